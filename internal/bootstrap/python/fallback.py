# JSON without the C accelerators.
import json

scan = json.JSONDecoder(strict=False).scan_once
escape, text = None, json.JSONEncoder(ensure_ascii=False).encode


def encode(value, text=text):
    return json.JSONEncoder(ensure_ascii=text is escape, allow_nan=False, separators=(",", ":")).encode(value)
