"""What the Python programs share: see checks.mjs."""

import json
import os
import traceback

ROUTES = json.loads(os.environ.get("SLUICE_ROUTES", "[]"))
PNG = os.environ.get("SLUICE_PNG", "")
TWO_IMAGES = "Two.\n[image 2x2 png]\n[image 2x2 png]"
QUESTIONS = [
    ('Now.\ncall:clock {"zone":"Oslo"}', "Noon in Oslo"),
    ('Later.\ncall:clock {"zone":"Rome"}\ncall:clock {"zone":"Bern"}', "Noon in Rome\nNoon in Bern"),
]
SLOW = "pace:300ms\none two three four five six seven eight nine ten eleven twelve"
ZONE = {
    "type": "object",
    "properties": {"zone": {"type": "string"}},
    "required": ["zone"],
    "additionalProperties": False,
}


def clock(zone):
    return f"Noon in {zone}"


def expect(actual, wanted):
    if actual != wanted:
        raise AssertionError(f"got {actual!r}, not {wanted!r}")


def run_checks(client, make_checks):
    """Runs the checks of a client over every route, and reports each as one line of JSON."""
    for route in ROUTES:
        for check, run in make_checks(route).items():
            failure = None
            try:
                run()
            except Exception:
                failure = traceback.format_exc()[-1500:]
            print(json.dumps({"client": client, "model": route["model"], "check": check, "failure": failure}), flush=True)
