"""Parses gcloud commands with gcloud's own parser, and runs none of them.

It is run by gcloud's Python, with the folder of the SDK as its argument. It reads a
JSON list of commands from standard input, each a list of arguments without gcloud
itself, and writes a list of what is wrong with each: a kind and a message, or null.
"""

import json
import os
import sys

root = sys.argv[1]
sys.path[:0] = [os.path.join(root, "lib"), os.path.join(root, "lib", "third_party")]

from googlecloudsdk import gcloud_main  # noqa: E402


def complaint(top, arguments):
    node, rest = top, list(arguments)
    while node.is_group:
        if not rest:
            return "Incomplete", "a group of commands, and no command"
        child = node.LoadSubElement(rest[0])
        if child is None:
            return "UnknownCommand", "there is no command " + rest[0]
        node, rest = child, rest[1:]
    try:
        node._parser.parse_args(rest, raise_error=True)
    except SystemExit as exit:
        return "Exit", str(exit)
    except Exception as error:
        return type(error).__name__, str(error).strip().split("\n")[0]
    return None


commands = json.load(sys.stdin)
top = gcloud_main.CreateCLI([])._TopElement()
results = [complaint(top, command) for command in commands]
json.dump(results, sys.stdout)
