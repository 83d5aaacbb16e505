//! What the text of a server's version tells, as the greeting has it (`8.4.3`, `11.4.2-MariaDB`).

/// Whether it is a MariaDB's.
pub fn is_mariadb(version: &str) -> bool {
    version.contains("MariaDB")
}

/// Whether it is that of a MySQL 8.0 or later, which has collations with ids from 255 on.
pub fn is_mysql_8(version: &str) -> bool {
    mysql_major(version).is_some_and(|major| major >= 8)
}

/// Whether it is that of a MySQL 9 or later, which has no COM_PROCESS_KILL.
pub fn is_mysql_9(version: &str) -> bool {
    mysql_major(version).is_some_and(|major| major >= 9)
}

/// Whether it is that of a server on which variables of transactions are named `transaction_isolation` and so on, not `tx_isolation`
/// (MySQL 5.7.20, MariaDB 11.1).
pub fn has_transaction_names(version: &str) -> bool {
    let (version, first) = match is_mariadb(version) {
        true => (version.strip_prefix("5.5.5-").unwrap_or(version), [11, 1, 0]),
        false => (version, [5, 7, 20]),
    };
    let numbers = version.split(['.', '-']).map_while(|part| part.parse::<u32>().ok());
    numbers.take(first.len()).ge(first)
}

fn mysql_major(version: &str) -> Option<u32> {
    let major = version.split('.').next()?.parse().ok()?;
    (!is_mariadb(version)).then_some(major)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_variables_of_transactions_have_their_later_names_is_told() {
        for (version, expected) in [
            ("9.7.0", true),
            ("8.0.42-33", true),
            ("5.7.20", true),
            ("5.7.12", false),
            ("5.6.51-log", false),
            ("5.5.5-10.11.14-MariaDB-0+deb12u2", false),
            ("11.0.6-MariaDB", false),
            ("11.1.2-MariaDB", true),
            ("12.0.2-MariaDB-log", true),
            ("", false),
        ] {
            assert_eq!(has_transaction_names(version), expected, "{version}");
        }
    }

    #[test]
    fn products_and_their_ages_are_told_apart() {
        for (version, mariadb, mysql_8, mysql_9) in [
            ("9.7.0", false, true, true),
            ("8.0.42-33", false, true, false),
            ("5.7.44-log", false, false, false),
            ("10.11.14-MariaDB-0+deb12u2", true, false, false),
            ("5.5.5-10.6.22-MariaDB", true, false, false),
            ("", false, false, false),
        ] {
            let told = (is_mariadb(version), is_mysql_8(version), is_mysql_9(version));
            assert_eq!(told, (mariadb, mysql_8, mysql_9), "{version}");
        }
    }
}
