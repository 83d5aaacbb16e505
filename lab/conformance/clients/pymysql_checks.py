"""PyMySQL: text protocol, with every field of the column definitions and of the OK packets as they were received."""

import time

import pymysql
from pymysql.constants import CLIENT, COMMAND

import dbapi  # noqa: F401 (importing it registers its checks)
from common import check, main, plain, rows
from driver import MySQLdbLike


class Driver(MySQLdbLike):
    """PyMySQL for the shared checks."""

    cursors = pymysql.cursors
    errors = (pymysql.Error, OSError)

    def connect(self, config, options):
        flags = CLIENT.MULTI_STATEMENTS
        if options.get("found_rows"):
            flags |= CLIENT.FOUND_ROWS
        arguments = {
            "host": config["host"],
            "port": config["port"],
            "user": options["user"],
            "password": options["password"],
            "database": options["database"],
            "charset": options.get("charset", "utf8mb4"),
            "autocommit": options.get("autocommit"),
            "init_command": options.get("init_command"),
            "local_infile": bool(options.get("local_infile")),
            "client_flag": flags,
            "connect_timeout": 15,
            "read_timeout": 40,
            "write_timeout": 40,
        }
        if not options.get("typed"):
            arguments.update(conv={}, use_unicode=False)
        if options.get("tls"):
            arguments["ssl"] = {"check_hostname": False, "verify_mode": "none"}
        else:
            arguments["ssl_disabled"] = True
        return pymysql.connect(**arguments)

    def query(self, connection, sql):
        outcome = []
        try:
            connection.query(sql)
            outcome.append(self.describe(connection._result))
            while connection._result.has_next:
                connection.next_result()
                outcome.append(self.describe(connection._result))
        except self.errors as error:
            outcome.append({"error": self.error(error)})
        return outcome

    def describe(self, result):
        if result.field_count:
            columns = [
                [
                    plain(field.db), field.table_name, field.org_table, field.name, field.org_name,
                    field.charsetnr, field.length, field.type_code, field.flags, field.scale,
                ]
                for field in result.fields
            ]
            return {
                "columns": columns, "rows": rows(result.rows),
                "status": result.server_status, "warnings": result.warning_count,
            }
        return {
            "affected": result.affected_rows, "insert_id": result.insert_id, "status": result.server_status,
            "warnings": result.warning_count, "info": plain(result.message),
        }

    def scalar(self, connection, sql):
        connection.query(sql)
        return connection._result.rows[0][0]

    def ping(self, connection):
        connection.ping(reconnect=False)

    def abandon(self, connection):
        """Closes the socket in the middle of a result."""
        connection._force_close()


def command(connection, number, argument=b""):
    """The answer to any command, as it is."""
    connection._execute_command(number, argument)
    packet = connection._read_packet()
    return plain(packet.get_all_data())


@check("commands.unknown")
def unknown_command(context):
    connection = context.connect()
    answers = [context.error_of(command, connection, number) for number in (0x00, 0x05, 0x0F, 0x10, 0x14, 0x7F, 0xFF)]
    return [answers, context.run(connection, "SELECT 1")]


@check("commands.field_list")
def field_list(context):
    connection = context.connect()
    context.run(connection, "CREATE TABLE field_list (id INT NOT NULL DEFAULT 5, v VARCHAR(10))")
    return context.error_of(command, connection, COMMAND.COM_FIELD_LIST, b"no_such_table\0%")


@check("commands.set_option")
def set_option(context):
    connection = context.connect()
    before = context.run(connection, "SELECT 1; SELECT 2")
    off = command(connection, COMMAND.COM_SET_OPTION, b"\x01\x00")
    refused = context.run(connection, "SELECT 1; SELECT 2")
    on = command(connection, COMMAND.COM_SET_OPTION, b"\x00\x00")
    context.move()
    return [before, off, refused, on, context.run(connection, "SELECT 1; SELECT 2"),
            context.error_of(command, connection, COMMAND.COM_SET_OPTION, b"\x09\x00")]


@check("commands.no_warnings_of_before")
def no_warnings_of_before(context):
    """MySQL's answer tells how many warnings the statement before has left: in a session that has sent none yet, none."""
    answers = []
    for _ in range(3):
        connection = RawCollation.numbered(context, 45)
        context.opened.append(connection)
        answers.append(command(connection, COMMAND.COM_INIT_DB, context.config["schema"].encode()))
        answers.append(command(connection, COMMAND.COM_SET_OPTION, b"\x00\x00"))
        context.move()
    return answers


@check("commands.set_option_outlasts_the_user")
def set_option_outlasts_the_user(context):
    connection = context.connect()
    answers = [command(connection, COMMAND.COM_SET_OPTION, b"\x01\x00")]
    connection._execute_command(COMMAND.COM_CHANGE_USER, b"conf_empty\0\0\0\x2d\0mysql_native_password\0\0")
    if connection._read_packet().get_all_data()[:1] == b"\xfe":  # the other plugin, and still no password
        connection.write_packet(b"")
        connection._read_packet()
    answers += [context.run(connection, "SELECT CURRENT_USER()"), context.run(connection, "SELECT 1; SELECT 2")]
    answers.append(command(connection, COMMAND.COM_SET_OPTION, b"\x00\x00"))
    return [*answers, context.run(connection, "SELECT 1; SELECT 2")]


@check("commands.ping_and_init_db_packets")
def small_commands(context):
    connection = context.connect()
    answers = [
        command(connection, COMMAND.COM_PING),
        command(connection, COMMAND.COM_INIT_DB, b"information_schema"),
        context.error_of(command, connection, COMMAND.COM_INIT_DB, b"no_such_schema"),
        context.error_of(command, connection, COMMAND.COM_INIT_DB, b""),
        context.run(connection, "SELECT DATABASE()"),
    ]
    context.run(connection, "BEGIN")
    answers.append(command(connection, COMMAND.COM_PING))
    return answers


@check("commands.ping_tells_of_warnings")
def ping_warnings(context):
    """As many as the last statement has left, errors among them, wherever they are known by now."""
    results = []
    for statements in (["SELECT 1"], ["SELECT CAST('x' AS SIGNED), CAST('y' AS SIGNED)"], ["DROP TABLE IF EXISTS no_such_table"],
                       ["SELECT nope"], ["SELECT CAST('x' AS SIGNED)", "SELECT nope"],
                       ["SELECT CAST('x' AS SIGNED)", "SHOW WARNINGS"], ["SELECT CAST('x' AS SIGNED)", "KILL QUERY 2000000000"]):
        connection = context.connect()
        for sql in statements:
            context.run(connection, sql)
        answers = [command(connection, COMMAND.COM_PING), command(connection, COMMAND.COM_PING)]
        time.sleep(1.5)
        context.move()
        answers += [command(connection, COMMAND.COM_PING), context.run(connection, "SHOW WARNINGS")]
        context.close()
        results.append([statements, answers, context.error_of(command, context.connect(), COMMAND.COM_PING)])
        context.opened, context.movers = [], []
    return results


@check("commands.ping_tells_the_status_after_an_error")
def ping_status(context):
    """No error tells whether a transaction is open."""
    context.run(context.connect(), "CREATE TABLE ping_status (a INT)")
    results = []
    for autocommit in (0, 1):
        for begin in ("COMMIT", "BEGIN", "INSERT INTO ping_status VALUES (1)"):
            for failing in ("SELECT * FROM no_such_table", "SELECT x FROM ping_status", "CREATE TABLE ping_status (b INT)", "SELEC"):
                connection = context.connect()
                context.run(connection, f"SET autocommit = {autocommit}")
                context.run(connection, begin)
                context.run(connection, failing)
                answers = [command(connection, COMMAND.COM_PING), context.run(connection, "SELECT 1")]
                answers += [context.run(connection, "ROLLBACK"), command(connection, COMMAND.COM_PING)]
                results.append([autocommit, begin, failing, answers])
    return results


@check("commands.reset_connection")
def reset_connection(context):
    connection = context.connect()
    context.run(connection, "SET @a = 1, time_zone = '+03:00', NAMES latin1")
    context.run(connection, "SET NAMES latin1")
    context.run(connection, "CREATE TEMPORARY TABLE reset_me (a INT)")
    context.run(connection, "USE information_schema")
    context.run(connection, "BEGIN")
    answer = command(connection, COMMAND.COM_PING), command(connection, 0x1F)
    return [answer, context.run(connection, "SELECT @a, @@time_zone, DATABASE(), @@character_set_client, @@collation_connection"),
            context.run(connection, f"SELECT * FROM {context.config['schema']}.reset_me")]


@check("commands.statement_unknown")
def unknown_statement(context):
    connection = context.connect()
    execute = b"\x63\x00\x00\x00\x00\x01\x00\x00\x00"
    return [
        context.error_of(command, connection, COMMAND.COM_STMT_EXECUTE, execute),
        context.error_of(command, connection, COMMAND.COM_STMT_RESET, b"\x63\x00\x00\x00"),
        context.error_of(command, connection, COMMAND.COM_STMT_FETCH, b"\x63\x00\x00\x00\x01\x00\x00\x00"),
        context.run(connection, "SELECT 1"),
    ]


@check("commands.statement_prepared_last")
def statement_prepared_last(context):
    """MariaDB has an id for it."""
    connection = context.connect()
    last = b"\xff\xff\xff\xff"
    answers = [context.error_of(command, connection, COMMAND.COM_STMT_RESET, last)]
    connection._execute_command(COMMAND.COM_STMT_PREPARE, b"DO 1")
    connection._read_packet()
    for code, rest in ((COMMAND.COM_STMT_EXECUTE, b"\x00\x01\x00\x00\x00"), (COMMAND.COM_STMT_RESET, b"")):
        context.move()
        answers.append(context.error_of(command, connection, code, last + rest))
    connection._execute_command(COMMAND.COM_STMT_CLOSE, last)
    answers.append(context.error_of(command, connection, COMMAND.COM_STMT_RESET, last))
    return answers


@check("commands.malformed_statement_commands")
def malformed(context):
    connection = context.connect()
    return [
        context.error_of(command, connection, COMMAND.COM_STMT_EXECUTE, b"\x01"),
        context.error_of(command, connection, COMMAND.COM_STMT_RESET, b""),
        context.run(connection, "SELECT 1"),
    ]


@check("commands.malformed_commands")
def malformed_commands(context):
    """As far as no server reads beyond the end of a packet."""
    connection = context.connect()
    short = [
        (COMMAND.COM_SET_OPTION, b"\x00"),
        (COMMAND.COM_STMT_FETCH, b"\x01\x00\x00\x00"),
        (COMMAND.COM_STMT_RESET, b"\x01\x00\x00"),
        (COMMAND.COM_PROCESS_KILL, b"\x01"),
    ]
    commands = [
        (COMMAND.COM_SET_OPTION, b"\x02\x00\x00"),
        (COMMAND.COM_STMT_EXECUTE, b"\x01\x00\x00\x00\x00\x01\x00\x00"),
        (COMMAND.COM_STMT_FETCH, b"\x01\x00\x00\x00\x01\x00\x00\x00\x00\x00"),
        (COMMAND.COM_PROCESS_KILL, b"\xff\xff\xff\x7f"),
        (COMMAND.COM_PROCESS_KILL, b"\xff\xff\xff\x7f\x00"),
        (COMMAND.COM_SHUTDOWN, b""),  # of a user without the privilege
    ]
    if context.config["server"] == "mysql":
        commands += short
    answers = [context.error_of(command, connection, *one) for one in commands]
    # The name of the plugin is missing.
    refused = context.error_of(command, context.connect(), COMMAND.COM_CHANGE_USER, b"conf\x00\x00\x00\x2d\x00")
    return [answers, context.run(connection, "SELECT 1"), refused]


@check("commands.statement_commands_that_end_early")
def short_statement_commands(context):
    connection = context.connect()
    connection._execute_command(COMMAND.COM_STMT_PREPARE, b"SELECT ?")
    prepared = connection._read_packet().get_all_data()
    for _ in range(4):  # a parameter and a column, each with an EOF behind it
        connection._read_packet()
    answers = []
    for rest in (b"", b"\x00", b"\x00\x01", b"\x00\x01\x03"):
        execution = prepared[1:5] + b"\x00\x01\x00\x00\x00" + rest
        answers.append(context.error_of(command, connection, COMMAND.COM_STMT_EXECUTE, execution))
    connection._execute_command(COMMAND.COM_STMT_CLOSE, prepared[1:3])
    if context.config["server"] == "mysql":  # which answers what it cannot read, though this command has no answer
        answers.append(context.error_of(connection._read_packet))
    return [answers, context.run(connection, "SELECT 1")]


@check("prepared.types_of_an_execution_that_is_refused")
def refused_types(context):
    """What was sent in pieces for no parameter is told to the next execution, whose types MySQL keeps."""
    results = []
    text, number = b"\x01\xfd\x00", b"\x01\x01\x00"
    for first in (b"", text, number):
        for refused in (b"\x00", text, number):
            connection = context.connect()
            connection._execute_command(COMMAND.COM_STMT_PREPARE, b"SELECT CONCAT(?)")
            statement = connection._read_packet().get_all_data()[1:5]
            for _ in range(4):
                connection._read_packet()

            def execute(types, statement=statement, connection=connection):
                argument = statement + b"\x00\x01\x00\x00\x00" + b"\x00" + types + b"\x01a"
                connection._execute_command(COMMAND.COM_STMT_EXECUTE, argument)
                if connection._read_packet().get_all_data() != b"\x01":
                    return "no rows"
                packets = [connection._read_packet().get_all_data() for _ in range(4)]
                return plain(packets[2])

            answers = [context.error_of(execute, first)] if first else []
            connection._execute_command(COMMAND.COM_STMT_SEND_LONG_DATA, statement + b"\x09\x00data")
            answers.append(context.error_of(execute, refused))
            answers.append(command(connection, COMMAND.COM_STMT_RESET, statement))
            answers.append(context.error_of(execute, b"\x00"))
            results.append([first.hex(), refused.hex(), answers])
    return results


@check("commands.statistics_form")
def statistics(context):
    connection = context.connect()
    connection._execute_command(COMMAND.COM_STATISTICS, b"")
    text = connection._read_packet().get_all_data().decode()
    return text.split(":")[0], [part.split(":")[0].strip() for part in text.split("  ")]


@check("charset.handshake_collations", server="mysql")
def handshake_collations(context):
    results = []
    for charset in ("utf8mb4", "latin1", "utf8mb3", "sjis", "gbk", "cp932", "ascii"):
        connection = context.connect(charset=charset)
        results.append([charset, context.run(
            connection, "SELECT @@character_set_client, @@collation_connection, @@character_set_results, 'x'")])
    return results


# A character whose second byte is a backslash, and one whose second byte is a backquote where there is such a one.
WIDE = {
    "gbk": (b"\xa8\x5c", b"\xa8\x60"), "sjis": (b"\x95\x5c", b"\x95\x60"), "cp932": (b"\x95\x5c", b"\x95\x60"),
    "big5": (b"\xb3\x5c", b"\xb3\x60"), "gb18030": (b"\xa8\x5c", b"\xa8\x60"),
}


@check("charset.second_bytes_that_are_symbols")
def wide_characters(context):
    """What is hidden from a reader of bytes, in quotes or behind them, takes a lock or sets a variable."""
    results = []
    for charset, (backslash, backquote) in WIDE.items():
        if charset == "gb18030" and context.config["server"] == "mariadb":
            continue
        lead = backslash[:1]
        for number, sql in enumerate((
                b"SELECT HEX('" + backslash + b"'), @v := 'kept'",
                b"SELECT HEX(\"a" + backslash + b"\"), @v := \"kept\"",
                b"SELECT 1 AS `" + backquote + b"`, @v := 'kept' AS `b`",
                b"SELECT 1 AS " + backquote + b", @v := 'kept' AS `b`",
                b"SELECT HEX(_" + charset.encode() + b"'" + backslash + b"'), @v := 'kept'",
                # The first byte of a character without the second, and an escaped first byte.
                b"SELECT HEX('" + lead + b"'), @v := 'kept'",
                b"SELECT HEX('\\" + backslash + b"', @v := 'kept') -- '), @v := 'kept'")):
            # What is compared is what follows, not how each server words its errors about odd bytes.
            connection = context.connect()
            context.run(connection, f"SET NAMES {charset}, character_set_results = utf8mb4")
            first = connection_query(connection, sql)
            context.move()
            results.append([charset, number, first, context.run(connection, "SELECT @v")])
            context.close()
            context.opened, context.movers = [], []
    return results


def connection_query(connection, sql):
    try:
        connection.query(sql)
        return rows(connection._result.rows)
    except pymysql.Error as error:
        return error.args[0]


@check("charset.invalid_in_statements")
def invalid_characters(context):
    """Statements with bytes that are no characters, which servers complain of."""
    results = []
    for sql in (
            b"SELECT '\xff'", b"SELECT 'a\xc3', 1", b"SELECT '\xf0\x9f'", b"SELECT 1 /* \xff */", b"DO '\xff'",
            b"SELECT '\xff' FROM (SELECT 1) t", b"SET @x = '\xff'", b"SELECT `\xff`", b"INSERT INTO inv VALUES ('\xff')"):
        connection = context.connect()
        context.run(connection, "CREATE TABLE IF NOT EXISTS inv (a VARCHAR(10))")
        for _ in range(2):
            results.append([plain(sql), context.run(connection, sql), context.run(connection, "SHOW WARNINGS"),
                            context.run(connection, "SELECT @@warning_count")])
    return results


@check("commands.change_user_attributes")
def change_user_attributes(context):
    """Attributes that are cut off, too long, or not in pairs."""
    pair = b"\x01k\x01v"
    answers = []
    for attributes in (
            b"", b"\x00", b"\x04" + pair, b"\x05" + pair, b"\x03" + pair, b"\x04" + pair + b"more", b"\xfc", b"\xfc\x04",
            b"\xfc\x04\x00" + pair, b"\xfd\x04\x00\x00" + pair, b"\xfe\x04\0\0\0\0\0\0\0" + pair, b"\xfb", b"\xff", b"\xff" + pair,
            b"\x02\x01k", b"\x02\x05k", b"\x04\x01k\x09v", b"\x03\xfb\x01v", b"\x02\xff\x01", b"\x03\xfc\x01v",
            b"\x04" + b"\x00\x01vx", b"\xfe\xff\xff\xff\xff\xff\xff\xff\xff" + pair):
        for password in (b"\0", b"\x04junk"):
            body = b"conf_empty\0" + password + b"\0\x2d\0mysql_native_password\0" + attributes
            answer = context.error_of(command, context.connect(), COMMAND.COM_CHANGE_USER, body)
            asked = str(answer.get("returned", "")).startswith("s:x:fe")
            answers.append([attributes.hex(), "asked for the password" if asked else answer])
    return answers


@check("login.collation_number")
def collation_numbers(context):
    """The handshake's one byte of collation, without the SET NAMES that drivers send after it."""
    results = []
    for number in (8, 33, 45, 46, 63, 95, 192, 224, 255):
        connection = RawCollation.numbered(context, number)
        context.opened.append(connection)
        results.append([number, context.run(
            connection, "SELECT @@character_set_client, @@collation_connection, @@character_set_results, 'x'")])
    return results


class RawCollation(pymysql.connections.Connection):
    """Says the collation that is asked for, by number."""

    number = 45

    @classmethod
    def numbered(cls, context, number):
        kind = type("Numbered", (cls,), {"number": number})
        return kind(
            host=context.config["host"], port=context.config["port"], user="conf",
            password=context.config["passwords"]["conf"], ssl_disabled=True, autocommit=None, conv={}, use_unicode=False,
            read_timeout=20)

    def _request_authentication(self):
        original = pymysql.connections.charset_by_name
        number = self.number

        class Numbered:
            id = number

        pymysql.connections.charset_by_name = lambda _name: Numbered
        try:
            super()._request_authentication()
        finally:
            pymysql.connections.charset_by_name = original

    def set_character_set(self, charset, collation=None):
        """The handshake alone shall decide."""


# The bits of the greeting that a client decides by, without those that concern the server's own tools.
CLIENTS_DECIDE_BY = {
    "FOUND_ROWS": 1 << 1, "CONNECT_WITH_DB": 1 << 3, "COMPRESS": 1 << 5, "LOCAL_FILES": 1 << 7, "IGNORE_SPACE": 1 << 8,
    "PROTOCOL_41": 1 << 9, "SSL": 1 << 11, "TRANSACTIONS": 1 << 13, "SECURE_CONNECTION": 1 << 15,
    "MULTI_STATEMENTS": 1 << 16, "MULTI_RESULTS": 1 << 17, "PS_MULTI_RESULTS": 1 << 18, "PLUGIN_AUTH": 1 << 19,
    "CONNECT_ATTRS": 1 << 20, "PLUGIN_AUTH_LENENC": 1 << 21, "SESSION_TRACK": 1 << 23, "DEPRECATE_EOF": 1 << 24,
    "ZSTD": 1 << 26, "QUERY_ATTRIBUTES": 1 << 27,
}


@check("login.greeting")
def greeting(context):
    connection = context.connect()
    capabilities = connection.server_capabilities
    return {
        "version": connection.server_version, "protocol": connection.protocol_version, "language": connection.server_language,
        "capabilities": {name: bool(capabilities & bit) for name, bit in CLIENTS_DECIDE_BY.items()},
        "status": connection.server_status, "plugin": plain(connection._auth_plugin_name),
    }


if __name__ == "__main__":
    main(Driver())
