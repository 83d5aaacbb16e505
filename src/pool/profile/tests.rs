use super::*;
use proptest::prelude::*;

/// A server that knows what its number says: 8 for MySQL 8, 108 for one whose client ignores space.
struct Fake(u16);

impl Server for Fake {
    fn knows_collation(&self, id: u16) -> bool {
        id < 255 || self.0 % 100 == 8
    }
    fn ignores_space(&self) -> bool {
        self.0 > 100
    }
    fn has_transaction_names(&self) -> bool {
        self.0 == 8
    }
}

fn profile(schema: Option<&str>, variables: &[(&str, &str)]) -> Profile {
    let mut profile = Profile::login(schema, 45);
    variables.iter().for_each(|(name, value)| profile.set(name, value));
    profile
}

#[test]
fn distance_grows_with_what_differs_and_a_schema_stays() {
    let plain = profile(None, &[]);
    let set = profile(Some("a"), &[("time_zone", "'x'")]);
    assert_eq!(plain.distance(&plain), Some(0));
    assert_eq!(plain.distance(&set), Some(2));
    assert_eq!(set.distance(&profile(None, &[("time_zone", "'x'")])), None);
    assert_eq!(set.distance(&profile(Some("b"), &[("time_zone", "'y'")])), Some(3));
}

#[test]
fn what_is_not_wanted_goes_back_to_its_default() {
    let have = profile(None, &[("sql_mode", "''"), ("time_zone", "'x'")]);
    let want = profile(None, &[("sql_mode", "'ANSI'"), ("wait_timeout", "5")]);
    let set = have.set_statement(&want, &Fake(8)).unwrap();
    assert_eq!(set, "SET time_zone=DEFAULT, sql_mode='ANSI', wait_timeout=5");
    assert_eq!(want.set_statement(&want, &Fake(8)), None);
}

#[test]
fn what_mysql_gives_a_wrong_default_gets_its_global_value() {
    let (plain, set) =
        (profile(None, &[]), profile(None, &[("foreign_key_checks", "'OFF'"), ("unique_checks", "'OFF'")]));
    let back = set.set_statement(&plain, &Fake(8)).unwrap();
    assert_eq!(
        back,
        "SET foreign_key_checks=@@GLOBAL.foreign_key_checks, unique_checks=@@GLOBAL.unique_checks"
    );
}

#[test]
fn a_variable_that_has_two_names_is_one() {
    let mut set = profile(None, &[("tmp_table_size", "1"), ("tmp_memory_table_size", "2")]);
    assert_eq!(set, profile(None, &[("tmp_memory_table_size", "2")]));
    set.unset("tmp_table_size");
    assert_eq!(set, profile(None, &[]));
}

#[test]
fn a_variable_is_set_by_the_name_that_the_server_knows() {
    let plain = profile(None, &[]);
    for name in ["transaction", "tx"] {
        let (isolation, read_only) = (format!("{name}_isolation"), format!("{name}_read_only"));
        let set = profile(None, &[(&isolation, "'SERIALIZABLE'"), (&read_only, "'ON'")]);
        for (server, known) in [(8, "transaction"), (10, "tx")] {
            let there = plain.set_statement(&set, &Fake(server)).unwrap();
            assert_eq!(there, format!("SET {known}_isolation='SERIALIZABLE', {known}_read_only='ON'"));
            let back = set.set_statement(&plain, &Fake(server)).unwrap();
            assert_eq!(back, format!("SET {known}_isolation=DEFAULT, {known}_read_only=DEFAULT"));
        }
    }
}

#[test]
fn names_come_first_and_what_overrides_them_after() {
    let plain = profile(None, &[]);
    let mut set = plain.clone();
    set.set("character_set_results", "utf8");
    set.set_names("latin1");
    set.set("character_set_results", "NULL");
    set.set("character_set_connection", "latin2");
    set.set("collation_connection", "'latin2_bin'");
    let there = plain.set_statement(&set, &Fake(8)).unwrap();
    assert_eq!(there, "SET NAMES latin1, character_set_results=NULL, collation_connection='latin2_bin'");
    let back = set.set_statement(&plain, &Fake(8)).unwrap();
    assert_eq!(back, "SET NAMES utf8mb4 COLLATE utf8mb4_general_ci");
    set.set_names("latin1");
    assert_eq!(set.set_count(), 0);
}

#[test]
fn a_collation_that_a_server_lacks_is_its_default_as_in_its_own_handshake() {
    for (id, known, text) in [
        (255, 8, "utf8mb4 COLLATE utf8mb4_0900_ai_ci"),
        (303, 8, "utf8mb4 COLLATE utf8mb4_ja_0900_as_cs"),
        (255, 10, "DEFAULT"),
        (63, 10, "binary COLLATE binary"),
        (60_000, 8, "DEFAULT"),
    ] {
        let statement = Profile::login(None, id).login_statement(&Fake(known));
        assert_eq!(statement, format!("SET NAMES {text}"), "{id}");
    }
    assert_eq!(Profile::login(None, 255).login_collation(), Some(255));
    assert_eq!(Profile::login(None, 303).login_collation(), None);
}

#[test]
fn a_login_that_ignores_space_has_it_again() {
    let set = profile(None, &[("sql_mode", "''")]);
    let mode = "sql_mode=CONCAT(@@GLOBAL.sql_mode,',IGNORE_SPACE')";
    let back = set.set_statement(&profile(None, &[]), &Fake(108)).unwrap();
    assert_eq!(back, format!("SET {mode}"));
    let fresh = profile(None, &[]).login_statement(&Fake(108));
    assert_eq!(fresh, format!("SET NAMES utf8mb4 COLLATE utf8mb4_general_ci, {mode}"));
}

#[test]
fn what_a_client_has_after_its_reset_is_its_servers_matter() {
    let used = profile(Some("s"), &[("sql_mode", "''"), ("character_set_results", "NULL")]);
    let mysql = used.as_reset_by_client(45, false, true);
    assert_eq!((mysql.schema.as_deref(), mysql.set_count()), (Some("s"), 0));
    assert_eq!(mysql.login_statement(&Fake(8)), "SET NAMES DEFAULT");
    let mariadb = used.as_reset_by_client(45, true, true);
    assert_eq!(mariadb.get("sql_mode"), Some("@@GLOBAL.sql_mode"));
    assert_eq!(used.as_reset_by_client(45, true, false), Profile::login(Some("s"), 45));
    let left = used.after_refused_change();
    assert_eq!((left.get("sql_mode"), left.get("character_set_results")), (None, Some("NULL")));
}

#[test]
fn what_a_text_means_can_be_had_for_a_moment() {
    let mut here =
        profile(Some("here"), &[("autocommit", "'OFF'"), ("sql_mode", "''"), ("time_zone", "'x'")]);
    let there = profile(Some("there"), &[("sql_mode", "'ANSI'"), ("wait_timeout", "5")]).of_texts();
    assert_eq!(there, profile(Some("there"), &[("sql_mode", "'ANSI'")]));
    let moment = here.with_texts_of(&there);
    assert_eq!(moment.schema.as_deref(), Some("there"));
    assert_eq!(here.set_statement(&moment, &Fake(8)).unwrap(), "SET sql_mode='ANSI'");
    assert_eq!(moment.set_statement(&here, &Fake(8)).unwrap(), "SET sql_mode=''");
    here.set_names("latin1");
    here.set("character_set_results", "NULL");
    let moment = here.with_texts_of(&there);
    assert!(
        moment
            .set_statement(&here, &Fake(8))
            .unwrap()
            .starts_with("SET NAMES latin1, character_set_results=NULL")
    );
}

/// What a server makes of a SET statement: values by name, those of character sets after NAMES.
fn apply(state: &mut Profile, statement: &str) {
    for part in statement.trim_start_matches("SET ").split(", ") {
        match part.split_once('=') {
            None if part.ends_with("utf8mb4_general_ci") => {
                state.set_names("x");
                state.names = Names::Login(45);
            }
            None => state.set_names(part.trim_start_matches("NAMES ")),
            Some((name, "DEFAULT")) => state.unset(name),
            Some((name, value)) => state.set(name, value),
        }
    }
}

fn any_profile() -> impl Strategy<Value = Profile> {
    let name = proptest::sample::select(
        &[
            "autocommit",
            "sql_mode",
            "time_zone",
            "character_set_results",
            "collation_connection",
            "character_set_connection",
        ][..],
    );
    let value = proptest::sample::select(&["'a'", "'b'", "1"][..]);
    let names = proptest::option::of(proptest::sample::select(&["latin1", "gbk"][..]));
    (proptest::collection::vec((name, value), 0..5), names).prop_map(|(set, names)| {
        let mut profile = Profile::login(None, 45);
        names.into_iter().for_each(|names| profile.set_names(names));
        set.into_iter().for_each(|(name, value)| profile.set(name, value));
        profile
    })
}

proptest! {
    #[test]
    fn the_statement_leads_from_any_profile_to_any_other(have in any_profile(), want in any_profile()) {
        let mut state = have.clone();
        if let Some(statement) = have.set_statement(&want, &Fake(8)) {
            apply(&mut state, &statement);
        }
        prop_assert_eq!(&state, &want);
        prop_assert_eq!(have.distance(&want) == Some(0), have == want);
    }
}

#[test]
fn quotes_are_read_by_what_was_set_last() {
    use crate::quoting::Characters;
    let ansi = SqlMode { ansi_quotes: true, no_backslash_escapes: false };
    let mut profile = Profile::login(None, 28);
    let told = |profile: &Profile| {
        let Quoting { ansi_quotes, plain_backslash, characters } = profile.quoting(ansi);
        (ansi_quotes, plain_backslash, characters)
    };
    assert_eq!(told(&profile), (true, false, Characters::Gbk));
    profile.set("sql_mode", "'NO_BACKSLASH_ESCAPES'");
    profile.set_names("big5");
    assert_eq!(told(&profile), (false, true, Characters::Big5));
    profile.set("character_set_client", "'sjis'");
    assert_eq!(told(&profile), (false, true, Characters::Sjis));
    assert_eq!(told(&profile.with_texts_of(&Profile::login(None, 45))), (true, false, Characters::Plain));
    assert_eq!(told(&profile.after_refused_change()), (true, false, Characters::Sjis));
    profile.set("sql_mode", "@@GLOBAL.sql_mode");
    profile.unset("character_set_client");
    assert_eq!(told(&profile), (true, false, Characters::Big5));
}
