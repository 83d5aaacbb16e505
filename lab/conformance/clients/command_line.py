"""The command-line clients of MySQL and MariaDB, driven by their input and judged by what they print."""

import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

REAL_SERVERS = pathlib.Path(__file__).resolve().parents[2] / "real-servers.sh"
SECONDS = 60
MOST_LINES = 400
# What is different in every run: how long it took, which connection it was.
VARIES = [
    (re.compile(r"\((?:\d+ hours? )?(?:\d+ min )?\d+\.\d+ sec\)"), "(TIME)"),
    (re.compile(r"^(Connection id:|TCP port:|Uptime:|Threads:).*", re.M), r"\1 ..."),
    (re.compile(r"(Cipher in use is) \S+"), r"\1 ..."),
]
CHECKS = []


def check(name):
    def register(function):
        CHECKS.append((name, function))
        return function

    return register


class Client:
    """One of the two programs, with the address and account of the run."""

    def __init__(self, kind, config):
        self.kind = kind
        self.config = config

    def run(self, text, *options, user="conf", password=None, database=None):
        """What the client prints when it is given `text`."""
        config = self.config
        password = config["passwords"][user] if password is None else password
        database = config["schema"] if database is None else database
        command = [
            str(REAL_SERVERS), self.kind, f"-h{config['host']}", f"-P{config['port']}", f"-u{user}",
            f"--password={password}", "--max-allowed-packet=64M", *options,
        ]
        if database != "-":
            command.append(database)
        run = subprocess.run(command, input=text.encode(), capture_output=True, timeout=SECONDS)
        return {"status": run.returncode, "output": printed(run.stdout), "errors": printed(run.stderr)}


def printed(output):
    """The lines that were printed, or number and hash of very many."""
    text = output.decode("utf-8", "backslashreplace")
    for pattern, replacement in VARIES:
        text = pattern.sub(replacement, text)
    lines = text.splitlines()
    if len(lines) > MOST_LINES or len(text) > 40_000:
        return {"lines": len(lines), "sha1": hashlib.sha1(text.encode()).hexdigest()}
    return lines


def can_run(script):
    """The programs have one connection and no prepared statements, and draw tables."""
    return script["options"].get("tables") != "no" and all(step["kind"] == "move" or (step["kind"] == "text" and not step["on"]) for step in script["steps"])


def run_script(client, script):
    options = dict(script["options"])
    arguments = ["--force", "-vvv", "--column-type-info", "--comments"]
    arguments.append(f"--default-character-set={options.pop('charset', 'utf8mb4')}")
    statements = [step["sql"] for step in script["steps"] if step["kind"] == "text"]
    text = "delimiter $$\n" + "".join(f"{statement}\n$$\n" for statement in statements)
    return client.run(text, *arguments, **options)


TABLE = (
    "DROP TABLE IF EXISTS cli; CREATE TABLE cli (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(20), d DATETIME(3), b BLOB);"
    "INSERT INTO cli (v, d, b) VALUES ('one', '2024-01-01 01:02:03.004', x'00ff'), ('zw\u00f6lf', NULL, NULL), (NULL, NULL, 'x');"
)


@check("cli.output_forms")
def output_forms(client):
    client.run(TABLE)
    forms = ("-t", "-B", "-E", "-X", "-H", "-BN", "--raw", "--quick", "--unbuffered", "--binary-as-hex")
    return [client.run("SELECT * FROM cli; SELECT 1 WHERE FALSE;", form) for form in forms]


@check("cli.status")
def status(client):
    return client.run("status")


@check("cli.commands")
def commands(client):
    text = "use information_schema\nSELECT DATABASE();\nuse no_such_schema\nSELECT DATABASE();\nwarnings\nSELECT 1/0;\nnowarning\ncharset latin1\nSELECT @@character_set_client;\nconnect\nSELECT DATABASE();\n"
    return client.run(text, "--force", "-v")


@check("cli.rehash")
def rehash(client):
    client.run(TABLE)
    return client.run("rehash\nSELECT COUNT(*) FROM cli;\n", "--auto-rehash")


@check("cli.reset_connection")
def reset_connection(client):
    text = "SET @a = 1; SET time_zone = '+03:00';\nresetconnection\nSELECT @a, @@time_zone = @@global.time_zone, DATABASE();\n"
    return client.run(text, "--force")


@check("cli.login_errors")
def login_errors(client):
    return [
        client.run("SELECT 1", password="wrong"), client.run("SELECT 1", password=""),
        client.run("SELECT 1", database="no_such_schema"), client.run("SELECT 1", user="conf_reader", database="mysql"),
        client.run("SELECT CURRENT_USER()", user="conf_empty", password="", database="-"),
    ]


@check("cli.tls")
def tls(client):
    if client.config["server"] == "mariadb":
        return "the server has no TLS"
    options = ("--ssl-mode=REQUIRED",) if client.kind == "mysql" else ("--ssl",)
    plain = ("--ssl-mode=DISABLED",) if client.kind == "mysql" else ("--skip-ssl",)
    answers = [client.run("SELECT REPEAT('x', 100000), DATABASE()", *options), client.run("SELECT 1", *plain)]
    if client.kind == "mysql":
        answers += [client.run("SELECT 1", "--ssl-mode=REQUIRED", f"--tls-version={version}") for version in ("TLSv1.2", "TLSv1.3")]
    return answers


@check("cli.plain_first_login")
def plain_login(client):
    plain = ("--ssl-mode=DISABLED", "--get-server-public-key") if client.kind == "mysql" else ("--skip-ssl",)
    return client.run("SELECT CURRENT_USER()", *plain, user="conf_other")


@check("cli.compression")
def compression(client):
    zstd = client.kind == client.config["server"] == "mysql"  # MariaDB has none
    algorithms = ("zlib", "zstd", "zlib,zstd,uncompressed") if zstd else ("zlib",) if client.kind == "mysql" else ("",)
    answers = []
    for name in algorithms:
        option = f"--compression-algorithms={name}" if name else "--compress"
        answers.append(client.run("SELECT 'short'; SELECT REPEAT('x', 1000000); SELECT * FROM nothing; ", option, "--force"))
        answers.append(client.run("SELECT REPEAT('y', 17825792);", option))
        answers.append(client.run(f"SELECT LENGTH('{'z' * 3_000_000}');", option))
    if zstd:
        answers.append(client.run("SHOW SESSION STATUS LIKE 'nothing'; SELECT 1", "--compression-algorithms=zstd", "--zstd-compression-level=22"))
    return answers


@check("cli.local_infile")
def local_infile(client):
    create = "DROP TABLE IF EXISTS lines_t; CREATE TABLE lines_t (line VARCHAR(200));"
    load = "LOAD DATA LOCAL INFILE '{}' INTO TABLE lines_t; SELECT COUNT(*) > 0 FROM lines_t; SHOW WARNINGS;"
    return [
        client.run(create + load.format("/etc/debian_version"), "--local-infile=1", "-vv"),
        client.run(create + load.format("/no/such/file"), "--local-infile=1", "--force"),
        client.run(create + load.format("/etc/debian_version"), "--local-infile=0", "--force"),
    ]


@check("cli.init_command")
def init_command(client):
    return client.run("SELECT @@time_zone, @a", "--init-command=SET time_zone = '+06:00', @a = 5")


@check("cli.safe_updates")
def safe_updates(client):
    client.run(TABLE)
    return client.run("UPDATE cli SET v = 'x'; SELECT @@sql_select_limit, @@max_join_size, @@sql_safe_updates;", "--safe-updates", "--force")


@check("cli.character_sets")
def character_sets(client):
    names = ("latin1", "utf8mb4", "sjis", "gbk", "cp932", "binary")
    return [client.run("SELECT @@character_set_client, @@collation_connection, @@character_set_results, CONVERT(x'c3a9' USING utf8mb4)",
                       f"--default-character-set={name}") for name in names]


@check("cli.query_attributes")
def query_attributes(client):
    if client.kind != "mysql" or client.config["server"] != "mysql":
        return "not of this client or server"
    text = "query_attributes conf_one first conf_two 2\nSELECT mysql_query_attribute_string('conf_one'), mysql_query_attribute_string('conf_two'), mysql_query_attribute_string('none');\nSELECT mysql_query_attribute_string('conf_one');\n"
    return client.run(text)


@check("cli.stored_programs")
def stored_programs(client):
    text = (
        "delimiter //\nDROP PROCEDURE IF EXISTS cli_p//\nCREATE PROCEDURE cli_p(IN n INT, OUT m INT)\nBEGIN\n  DECLARE i INT DEFAULT 0;\n"
        "  WHILE i < n DO\n    SELECT i, REPEAT('x', i);\n    SET i = i + 1;\n  END WHILE;\n  SET m = i;\nEND//\ndelimiter ;\nCALL cli_p(4, @m);\nSELECT @m;\nSHOW CREATE PROCEDURE cli_p\\G\n"
    )
    return client.run(text, "-vv")


@check("cli.long_input")
def long_input(client):
    client.run(TABLE)
    values = ",".join(f"('value {number}')" for number in range(20_000))
    return client.run(f"INSERT INTO cli (v) VALUES {values}; SELECT COUNT(*), MAX(id) FROM cli; DELETE FROM cli WHERE v LIKE 'value%';", "-vvv")


@check("cli.transactions")
def transactions(client):
    client.run(TABLE)
    return client.run("BEGIN; DELETE FROM cli; SELECT COUNT(*) FROM cli; ROLLBACK; SELECT COUNT(*) FROM cli; SET autocommit = 0; DELETE FROM cli;") \
        , client.run("SELECT COUNT(*) FROM cli")


def main():
    kind, path = sys.argv[1:3]
    config = json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    client = Client(kind, config)
    jobs = [(script["name"], lambda script=script: run_script(client, script)) for script in config["scripts"] if can_run(script)]
    jobs += [(name, lambda function=function: function(client)) for name, function in CHECKS if config["only"] in name]
    for name, job in jobs:
        line = {"check": name}
        try:
            line["result"] = job()
        except (subprocess.SubprocessError, OSError) as error:
            line.update(broken=str(error)[-500:], where="")
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    os.environ["LC_ALL"] = "C.UTF-8"
    main()
