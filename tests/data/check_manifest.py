"""Compares manifests of Kubernetes with the schema of a CustomResourceDefinition: check_manifest.py CRD VERSION FILE...

Prints what the API server would refuse or drop: wrong types, unknown keys, missing keys, words that no enumeration has.
"""
import sys

try:
    import yaml
except ImportError:
    sys.exit(77)

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}


def check(schema, value, path, say):
    if schema.get("x-kubernetes-int-or-string"):
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            say(path + " is no number and no text")
        return
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return say(f"{path} is no {kind}")
    if "enum" in schema and value not in schema["enum"]:
        say(f"{path} '{value}' is not in the enumeration")
    if isinstance(value, list) and "items" in schema:
        for i, item in enumerate(value):
            check(schema["items"], item, f"{path}[{i}]", say)
    if not isinstance(value, dict) or schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    for key in schema.get("required", []):
        if key not in value:
            say(f"{path} lacks {key}")
    known, others = schema.get("properties"), schema.get("additionalProperties")
    for key, item in value.items():
        if known and key in known:
            check(known[key], item, f"{path}.{key}", say)
        elif isinstance(others, dict):
            check(others, item, f"{path}.{key}", say)
        elif known:
            say(f"{path}.{key} is no key of the schema")


crd = yaml.load(open(sys.argv[1]), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
versions = {one["name"]: one["schema"]["openAPIV3Schema"] for one in crd["spec"]["versions"]}
for name in sys.argv[3:]:
    manifest = next(yaml.safe_load_all(open(name)))
    check(versions[sys.argv[2]]["properties"]["spec"], manifest["spec"], "spec", print)
