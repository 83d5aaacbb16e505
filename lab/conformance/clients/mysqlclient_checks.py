"""mysqlclient: MariaDB's client library in C, as Python sees it."""

import os
import socket

import MySQLdb
import MySQLdb.cursors
from MySQLdb import _mysql
from MySQLdb.constants import CLIENT

import dbapi  # noqa: F401 (importing it registers its checks)
from common import check, main, plain, rows
from driver import MySQLdbLike

NO_MORE_RESULTS = -1


class Driver(MySQLdbLike):
    """mysqlclient for the shared checks."""

    cursors = MySQLdb.cursors
    errors = (MySQLdb.Error, OSError, LookupError)  # the last is of a character set that Python does not know

    def connect(self, config, options):
        flags = CLIENT.MULTI_STATEMENTS | CLIENT.MULTI_RESULTS
        if options.get("found_rows"):
            flags |= CLIENT.FOUND_ROWS
        arguments = {
            "host": config["host"],
            "port": config["port"],
            "user": options["user"],
            "password": options["password"],
            "database": options["database"],
            "init_command": options.get("init_command"),
            "local_infile": 1 if options.get("local_infile") else None,
            "compress": 1 if options.get("compress") else None,
            "client_flag": flags,
            "connect_timeout": 15,
            "read_timeout": 40,
            "write_timeout": 40,
            "ssl_mode": "REQUIRED" if options.get("tls") else "DISABLED",
        }
        arguments = {name: value for name, value in arguments.items() if value is not None}
        if options.get("typed"):
            return MySQLdb.connect(charset=options.get("charset", "utf8mb4"), autocommit=True, **arguments)
        # MySQLdb.Connection sets a flag of its own from this one's default.
        connection = _mysql.connect(conv={}, **arguments)
        connection.set_character_set(options.get("charset", "utf8mb4"))
        return connection

    def abandon(self, connection):
        """Shuts the socket down in the middle of a result: the library itself would read the rest before it closes."""
        socket.socket(fileno=os.dup(connection.fileno())).shutdown(socket.SHUT_RDWR)

    def query(self, connection, sql):
        outcome = []
        try:
            _mysql.connection.query(connection, sql.encode())
            outcome.append(self.describe(connection))
            while _mysql.connection.next_result(connection) != NO_MORE_RESULTS:
                outcome.append(self.describe(connection))
        except self.errors as error:
            outcome.append({"error": self.error(error), "state": connection.sqlstate() if hasattr(connection, "sqlstate") else None})
        return outcome

    def describe(self, connection):
        result = _mysql.connection.store_result(connection)
        if result is None:
            return {
                "affected": connection.affected_rows(), "insert_id": connection.insert_id(), "info": plain(connection.info()),
                "warnings": connection.warning_count(),
            }
        return {
            "columns": plain(result.describe()), "flags": plain(result.field_flags()),
            "rows": rows(result.fetch_row(0, 0)), "warnings": connection.warning_count(),
        }

    def scalar(self, connection, sql):
        _mysql.connection.query(connection, sql.encode())
        return _mysql.connection.store_result(connection).fetch_row(0, 0)[0][0]

    def ping(self, connection):
        connection.ping()


@check("commands.change_user_by_the_c_library")
def change_user(context):
    connection = context.connect()
    context.run(connection, "SET @a = 1, time_zone = '+03:00'")
    answers = [context.error_of(connection.change_user, "conf_other", "other-secret", context.config["schema"])]
    answers.append(context.run(connection, "SELECT CURRENT_USER(), DATABASE(), @a, @@time_zone"))
    answers.append(context.error_of(connection.change_user, "conf_other", "wrong"))
    return answers


@check("commands.statistics_of_the_c_library")
def statistics(context):
    connection = context.connect()
    return [part.split(b":")[0].strip().decode() for part in connection.stat().encode().split(b"  ")]


@check("commands.dump_debug_info")
def dump_debug_info(context):
    connection = context.connect()
    return [context.error_of(connection.dump_debug_info), context.run(connection, "SELECT 1")]


@check("commands.kill_by_the_c_library")
def kill(context):
    connection, killer = context.connect(), context.connect()
    return [context.error_of(killer.kill, 3_999_999_999), context.error_of(killer.kill, connection.thread_id()),
            "error" in context.run(connection, "SELECT 1")[-1]]


@check("commands.set_server_option")
def set_server_option(context):
    connection = context.connect()
    answers = []
    for option in (1, 0):
        connection.set_server_option(option)
        answers.append(context.run(connection, "SELECT 1; SELECT 2"))
    return answers


@check("charset.of_the_c_library")
def character_set(context):
    connection = context.connect()
    answers = []
    for name in ("latin1", "utf8mb3", "utf8mb4", "sjis"):
        connection.set_character_set(name)
        context.move()
        answers.append([connection.character_set_name(), plain(connection.get_character_set_info()["collation"]),
                        context.run(connection, "SELECT @@character_set_client, @@collation_connection")])
    return answers


@check("cursor.use_result")
def use_result(context):
    connection = context.connect()
    connection.query(b"SELECT 1 AS a UNION ALL SELECT 2 UNION ALL SELECT 3")
    result = connection.use_result()
    first = result.fetch_row(1, 1)
    rest = result.fetch_row(0, 2)
    return [plain(first), plain(rest), context.run(connection, "SELECT 'goes on'")]


@check("login.compression_of_the_c_library")
def compression(context):
    connection = context.connect(compress=True)
    return [context.run(connection, "SELECT 'short'"), context.run(connection, "SELECT REPEAT('x', 1000000)"),
            context.run(connection, f"SELECT LENGTH('{'y' * 3_000_000}')")]


if __name__ == "__main__":
    main(Driver())
