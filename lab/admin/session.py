"""Runs statements with a driver for Python and prints what each was answered, as JSON: session.py DRIVER FILE."""

import json
import sys


def text(value):
    """A cell. All are texts, as ProxySQL's are."""
    if isinstance(value, (bytes, bytearray)):
        return value.decode()
    if value is None or isinstance(value, str):
        return value
    raise TypeError(f"{value!r} is a {type(value).__name__}")


def outcome(cursor, error_class, sql):
    try:
        cursor.execute(sql)
        if cursor.description is None:
            return {"ok": cursor.rowcount}
        return {"columns": [column[0] for column in cursor.description], "rows": [[text(cell) for cell in row] for row in cursor.fetchall()]}
    except error_class as error:
        return {"error": [error.args[0], text(error.args[1]).split(": ", 1)[-1] if error_class.__module__.startswith("mysql") else error.args[1]]}


def connect(driver, config):
    named = {"host": config["host"], "port": config["port"], "user": config["user"], "password": config["password"]}
    if driver == "pymysql":
        import pymysql

        return pymysql.connect(**named, autocommit=True, read_timeout=30), pymysql.MySQLError
    import mysql.connector

    return mysql.connector.connect(**named, autocommit=True, use_pure=True, connection_timeout=30), mysql.connector.Error


def main():
    with open(sys.argv[2], encoding="utf-8") as file:
        config = json.load(file)
    connection, error_class = connect(sys.argv[1], config)
    cursor = connection.cursor()
    print(json.dumps([outcome(cursor, error_class, sql) for sql in config["statements"]]))
    connection.close()


main()
