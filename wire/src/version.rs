//! What the text of a server's version tells, as the greeting has it (`8.4.3`, `11.4.2-MariaDB`).

/// Whether it is a MariaDB's.
pub fn is_mariadb(version: &str) -> bool {
    version.contains("MariaDB")
}

/// Whether it is that of a MySQL 8.0 or later, which has collations with ids from 255 on.
pub fn is_mysql_8(version: &str) -> bool {
    let major = version.split('.').next().and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major >= 8) && !is_mariadb(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_their_ages_are_told_apart() {
        for (version, mariadb, mysql_8) in [
            ("9.7.0", false, true),
            ("8.0.42-33", false, true),
            ("5.7.44-log", false, false),
            ("10.11.14-MariaDB-0+deb12u2", true, false),
            ("5.5.5-10.6.22-MariaDB", true, false),
            ("", false, false),
        ] {
            assert_eq!((is_mariadb(version), is_mysql_8(version)), (mariadb, mysql_8), "{version}");
        }
    }
}
