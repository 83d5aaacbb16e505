"""The modules of Ansible's collection community.proxysql, as playbook.yml uses them."""

import os
import pathlib
import subprocess
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
SECONDS = 110


def problems(daemon, tools):
    """What a task says that fails, or that changes something where it should not or the other way round."""
    python = tools / "python/bin/python"
    with tempfile.TemporaryDirectory(prefix="ansible-") as home:
        environment = {
            **os.environ, "HOME": home, "ANSIBLE_COLLECTIONS_PATH": str(tools), "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false", "ANSIBLE_NOCOLOR": "1", "LC_ALL": "C.UTF-8",
        }
        command = [tools / "python/bin/ansible-playbook", "-e", f"admin_port={daemon.admin_port}",
                   "-e", f"ansible_python_interpreter={python}", HERE / "playbook.yml"]
        run = subprocess.run(command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=SECONDS)
    return [f"{run.returncode}: {run.stdout[-2500:]}{run.stderr[-500:]}"] if run.returncode else []
