//! Commands that are named in what a command says. They repeat the connection options of this command line, so that they reach the same brokers
//! if they are pasted.

use tollgate_operations::Connection;
use tollgate_worker::kafka::quoted;

/// The connection options of this command line, as they are repeated.
#[derive(Debug, Clone, Default)]
pub(crate) struct Hints {
    /// The options, each behind a space.
    options: String,
}

impl Hints {
    /// Returns the options of a command line. The properties of `-X` are not repeated: some of them are secrets.
    pub(crate) fn of(connection: &Connection) -> Self {
        let mut options = String::new();
        if let Some(config) = &connection.config {
            options.push_str(&format!(" -c {}", quoted(&config.display().to_string())));
        }
        if let Some(brokers) = &connection.brokers {
            options.push_str(&format!(" -b {}", quoted(brokers)));
        }
        if !connection.properties.is_empty() {
            options.push_str(" -X …");
        }
        Self { options }
    }

    /// Returns a command of this program: `tollgate` with the options, and these words.
    pub(crate) fn command(&self, words: &str) -> String {
        format!("tollgate{} {words}", self.options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_repeats_what_leads_to_the_brokers_and_no_secret() {
        let connection = |config: Option<&str>, brokers: Option<&str>, properties: &[&str]| Connection {
            config: config.map(Into::into),
            brokers: brokers.map(str::to_owned),
            properties: properties.iter().map(|property| (*property).to_owned()).collect(),
        };
        assert_eq!(Hints::of(&connection(None, None, &[])).command("control list"), "tollgate control list");
        let hints = Hints::of(&connection(Some("my files/it's.yaml"), Some("a:1,b:2"), &["sasl.password=MARKER", "x=y"]));
        assert_eq!(hints.command("abuse top"), "tollgate -c 'my files/it'\\''s.yaml' -b a:1,b:2 -X … abuse top");
    }

    #[test]
    fn a_word_is_one_word_for_a_shell() {
        let words = ["safety-stop_1", "", "a;reboot", "$(x)"].map(quoted);
        assert_eq!(words, ["safety-stop_1", "''", "'a;reboot'", "'$(x)'"]);
    }
}
