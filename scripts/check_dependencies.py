"""Checks the licences and the banned duplicates of every dependency against `deny.toml`.

Reads `cargo metadata` of the locked dependency tree, so it needs no network beyond Cargo's own. It does not
look up advisories: those need a database that is not part of the tree.
"""

import collections
import json
import pathlib
import re
import subprocess
import sys
import tomllib

PROJECT = pathlib.Path(__file__).resolve().parents[1]


def metadata():
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"]
    return json.loads(subprocess.run(command, cwd=PROJECT, check=True, capture_output=True).stdout)


def allowed(expression, licences):
    """Whether an SPDX expression can be met with the given licences. A slash is an old spelling of OR."""
    tokens = re.findall(r"\(|\)|[^\s()]+", expression.replace("/", " OR "))
    position = 0

    def peek():
        return tokens[position] if position < len(tokens) else None

    def take():
        nonlocal position
        position += 1
        return tokens[position - 1]

    def either():
        value = both()
        while peek() == "OR":
            take()
            value = both() or value
        return value

    def both():
        value = single()
        while peek() == "AND":
            take()
            value = single() and value
        return value

    def single():
        token = take()
        if token == "(":
            value = either()
            if take() != ")":
                raise ValueError(expression)
            return value
        if peek() == "WITH":
            take()
            token = f"{token} WITH {take()}"
        return token in licences

    value = either()
    if peek() is not None:
        raise ValueError(expression)
    return value


def findings(tree, rules):
    """One line per violation."""
    licences = set(rules["licenses"]["allow"])
    own = set(tree["workspace_members"])
    versions = collections.defaultdict(set)
    for package in tree["packages"]:
        if package["id"] in own:
            continue
        name = f"{package['name']} {package['version']}"
        versions[package["name"]].add(package["version"])
        if not package["license"]:
            yield f"{name}: names no licence"
        elif not allowed(package["license"], licences):
            yield f"{name}: licence {package['license']} is not among those of deny.toml"
        source = package["source"] or "a folder"
        if not source.startswith("registry+"):
            yield f"{name}: comes from {source}, not from the registry"
    for ban in rules["bans"]["deny"]:
        found = sorted(versions[ban["crate"]])
        if not ban.get("deny-multiple-versions"):
            if found:
                yield f"{ban['crate']}: is banned"
        elif len(found) > 1:
            yield f"{ban['crate']}: more than one version: {', '.join(found)}"


def main():
    tree = metadata()
    rules = tomllib.loads((PROJECT / "deny.toml").read_text("utf-8"))
    found = list(findings(tree, rules))
    for line in found:
        print(line)
    print(f"{len(tree['packages']) - len(tree['workspace_members'])} dependencies, {len(found)} findings")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
