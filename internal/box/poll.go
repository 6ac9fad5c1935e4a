package box

import "time"

// Forever, returned by a look of Poll, waits for wake alone.
const Forever time.Duration = -1

// Poll calls look until done is closed or look returns 0: first after the given
// time, and then after the time that look returned. While that is Forever, wake
// takes the timer's place.
func Poll(done, wake <-chan struct{}, first time.Duration, look func() time.Duration) {
	for wait := first; wait != 0; wait = look() {
		var timer <-chan time.Time
		woken := wake
		if wait != Forever {
			timer, woken = time.After(wait), nil
		}
		select {
		case <-timer:
		case <-woken:
		case <-done:
			return
		}
	}
}
