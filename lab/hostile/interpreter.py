"""The Python of a hostile host: it answers Ansible's modules as its attacker wants. Also its sudo.

usage: interpreter.py DIRECTORY python [FILE]       a module, on standard input or in a file
       interpreter.py DIRECTORY sudo ARGUMENTS...   a command for root, of which only the interpreter is started

Nothing of a module is carried out. DIRECTORY/answers.json has an honest answer by module; without that file the module
runs with the Python of DIRECTORY/real. DIRECTORY/attack.json lists the modules that get another answer, and which:

    {"module": NAME, "do": "merge", "value": {...}}      the honest answer with these keys
                     "do": "print", "value": BASE64      these bytes in its place
                     "do": "sleep"                       nothing, for a day
                     "do": "flood", "value": BYTES       an answer of this size

DIRECTORY/fired names those that got it. What the host sees is kept: DIRECTORY/calls has a line
of JSON for each module with its arguments, DIRECTORY/loot copies of the files that the control node sent.
"""

import ast
import base64
import json
import os
import re
import shutil
import subprocess
import sys
import time

DAY = 24 * 3600
BLOCK = 1024 * 1024
FOUND_PYTHON = 'python 3.11 %s\nsystem\nID=debian\nVERSION_ID="12"\n'
"""What the script of bootstrap_python.yml prints on a host with a Python: this one, never that of the control node."""


def describe_module(program):
    """Return name and arguments of the module in a program of Ansible (2.16 to the newest)."""
    name = re.search(r"^module_fqn='([\w.]+)'", program, re.M) or re.search(r"mod_name='([\w.]+)'", program)
    given = re.search(r"^params=(.*),$", program, re.M) or re.search(r"ANSIBALLZ_PARAMS = (.*)$", program, re.M)
    arguments = json.loads(ast.literal_eval(given.group(1))) if given else {}
    return (name.group(1).rpartition(".")[2] if name else ""), arguments.get("ANSIBLE_MODULE_ARGS", {})


def record_call(directory, name, arguments):
    """Keep what the control node sent."""
    loot = os.path.join(directory, "loot")
    os.makedirs(loot, exist_ok=True)
    sent = arguments.get("src")
    if isinstance(sent, str) and os.path.isfile(sent):
        shutil.copyfile(sent, os.path.join(loot, "%d-%s" % (len(os.listdir(loot)), os.path.basename(sent))))
    with open(os.path.join(directory, "calls"), "a") as calls:
        calls.write(json.dumps([name, arguments]) + "\n")


def find_attack(directory, name):
    """Return the attack on a module, None without one."""
    for asked in read_json(directory, "attack.json") or []:
        if asked["module"] == name:
            return asked
    return None


def read_json(directory, name):
    """Return the content of a file of the host, None without one."""
    try:
        with open(os.path.join(directory, name)) as file:
            return json.load(file)
    except FileNotFoundError:
        return None


def answer_honestly(directory, name, program, answers):
    """Return the text of an honest answer."""
    if answers is not None:
        return json.dumps(answers.get(name, {"changed": False}))
    with open(os.path.join(directory, "real")) as file:
        argv = [file.read().strip()]
    done = subprocess.run(argv, input=program.encode("utf-8", "surrogateescape"), stdout=subprocess.PIPE, check=False)
    return done.stdout.decode("utf-8", "surrogateescape")


def attack(directory, asked, honest):
    """Write the answer of the attacker in place of an honest one."""
    with open(os.path.join(directory, "fired"), "a") as fired:
        fired.write(asked["module"] + "\n")
    out, kind = sys.stdout.buffer, asked["do"]
    if kind == "sleep":
        time.sleep(DAY)
    elif kind == "print":
        out.write(base64.b64decode(asked["value"]))
    elif kind == "flood":
        out.write(b'{"changed": false, "msg": "')
        for _ in range(asked["value"] // BLOCK):
            out.write(b"A" * BLOCK)
        out.write(b'"}')
    else:
        found = json.loads(honest[honest.index("{") :])
        found.update(asked["value"])
        out.write(json.dumps(found).encode("utf-8", "surrogatepass"))
    out.flush()


def answer_module(directory, program):
    """Answer a module."""
    name, arguments = describe_module(program)
    record_call(directory, name, arguments)
    honest = answer_honestly(directory, name, program, read_json(directory, "answers.json"))
    asked = find_attack(directory, name)
    if asked:
        attack(directory, asked, honest)
    else:
        sys.stdout.write(honest)


def answer_sudo(directory, arguments):
    """Start the interpreter, or answer a script of the task `raw`; nothing else is started."""
    command = arguments[-1]
    own = os.path.join(directory, "python")
    if own in command:
        os.execv("/bin/sh", ["/bin/sh", "-c", command])
    record_call(directory, "raw", {"command": command})
    begun = re.search(r"BECOME-SUCCESS-\w+", command)
    if begun:
        sys.stdout.write(begun.group() + "\n")
        sys.stdout.flush()
    asked = find_attack(directory, "raw")
    if asked:
        attack(directory, asked, json.dumps({}))
    else:
        sys.stdout.write(FOUND_PYTHON % own)


if __name__ == "__main__":
    own, role, rest = sys.argv[1], sys.argv[2], sys.argv[3:]
    if role == "sudo":
        answer_sudo(own, rest)
    else:
        if rest:
            with open(rest[0], encoding="utf-8", errors="surrogateescape") as given:
                text = given.read()
        else:
            text = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        answer_module(own, text)
