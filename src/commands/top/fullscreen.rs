//! The alternate screen of a terminal, which is drawn in place and gives the terminal back as it was.

use std::io::{Read, Write};

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::mpsc::UnboundedSender;

/// Takes the alternate screen and hides the cursor.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l";
/// Shows the cursor and gives the screen back.
const LEAVE: &[u8] = b"\x1b[?25h\x1b[?1049l";

/// A taken screen. The terminal is as it was before once this is dropped, on an error and while a panic unwinds too.
#[derive(Debug)]
pub(super) struct Fullscreen {
    /// How the terminal was; `None` where keys do not come from one.
    before: Option<Termios>,
}

impl Fullscreen {
    /// Takes the screen. Keys are read one by one and not shown; Ctrl-C stays a signal.
    pub(super) fn enter() -> std::io::Result<Self> {
        let before = tcgetattr(std::io::stdin()).ok();
        if let Some(before) = &before {
            let mut quiet = before.clone();
            quiet.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            tcsetattr(std::io::stdin(), OptionalActions::Now, &quiet)?;
        }
        let screen = Self { before };
        // The message of a panic would go with the screen that it is written to.
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let _left = write(LEAVE);
            report(panic);
        }));
        write(ENTER)?;
        Ok(screen)
    }

    /// Draws lines from the top, and clears what is behind them. Rows that the terminal does not have are left out.
    pub(super) fn draw(&self, lines: &[String], rows: usize) -> std::io::Result<()> {
        let mut text = b"\x1b[H".to_vec();
        for (at, line) in lines.iter().take(rows).enumerate() {
            if at > 0 {
                text.extend(b"\r\n");
            }
            text.extend(line.as_bytes());
            text.extend(b"\x1b[K");
        }
        text.extend(b"\x1b[J");
        write(&text)
    }
}

fn write(text: &[u8]) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    out.write_all(text)?;
    out.flush()
}

impl Drop for Fullscreen {
    fn drop(&mut self) {
        // There is nobody to report a failure to, and nothing else to try.
        let _left = write(LEAVE);
        if let Some(before) = &self.before {
            let _restored = tcsetattr(std::io::stdin(), OptionalActions::Now, before);
        }
    }
}

/// Sends every key that is typed, from a thread of its own that ends with the process.
pub(super) fn read_keys(keys: UnboundedSender<u8>) -> std::io::Result<()> {
    let read = move || {
        for key in std::io::stdin().lock().bytes() {
            if key.map(|key| keys.send(key).is_err()).unwrap_or(true) {
                return;
            }
        }
    };
    std::thread::Builder::new().name("keys".to_owned()).spawn(read).map(|_| ())
}
