"""gpu-culler's configuration with limits of seconds."""

import json

BASE = {
    "mode": "enforce",
    "cycle": "1s",
    "telemetry": {
        "source": "nvml",
        "max_gap": "15s",
        "min_coverage": 0.5,
        "warm_up": "3s",
        "cpu_busy_threshold": 0.5,  # within a second or two a server's own housekeeping reaches less
        "nvml": {"poll": "1s"},
    },
    "policy": {
        "warn_after": "15s",
        "grace": "20s",
        "remind_before": [],
        "connected_warn_after": "10m",
        "card_unused_warn_after": "20m",
    },
    "mail": {"from": "GPU culler <gpu-culler@example.org>", "address": ["{user}@example.org"]},
}


def merged(base, changes):
    """The base with the changes in it, section by section."""
    result = dict(base)
    for key, value in changes.items():
        both_sections = isinstance(value, dict) and isinstance(result.get(key), dict)
        result[key] = merged(result[key], value) if both_sections else value
    return result


def to_toml(settings, section=()):
    """Nested dictionaries become sections."""
    plain = {key: value for key, value in settings.items() if not isinstance(value, dict)}
    lines = [f"[{'.'.join(section)}]"] if section and plain else []
    lines += [f"{key} = {to_toml_value(value)}" for key, value in plain.items()]
    for key, value in settings.items():
        if isinstance(value, dict):
            lines += ["", to_toml(value, (*section, key))]
    return "\n".join(lines)


def to_toml_value(value):
    """Plain values are the same in JSON and in TOML; a dictionary in a list stands in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {to_toml_value(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_toml_value, value)) + "]"
    return json.dumps(value)
