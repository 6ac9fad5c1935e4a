package sample

import "testing"

func TestParseOOMKills(t *testing.T) {
	for text, want := range map[string]int64{
		"nr_free_pages 9\noom_kill 3\nnuma_hit 4\n": 3,
		"nr_free_pages 9\noom_kill_x 3\n":           0,
		"nr_free_pages 9\noom_kill\n":               0,
		"":                                          0,
	} {
		if got := parseOOMKills([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
