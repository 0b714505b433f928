//! The changes that control records make, as data.

/// The change that a control record has made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// The type of the control, `passport` or `subject`; `note` for a record that is no control.
    pub control_type: &'static str,
    /// What the record did.
    pub effect: Effect,
    /// Whether it is an operator's: neither the abuse stage's nor a note.
    pub is_operators: bool,
}

/// The effect of a control record on the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The control is set, whatever there was before.
    Set,
    /// The control is removed.
    Removed,
    /// There was no such control to remove, or the record is a note.
    Absent,
}
