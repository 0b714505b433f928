//! What every stage needs: records in order, in bounded memory, none lost and none decided twice.
//!
//! | module | what it is |
//! |---|---|
//! | [`stage`] | the seam: the trait of what a worker does with the records of a partition |
//! | [`processor`] | a stage at work on one partition, the offset tracker, checkpoints |
//! | [`checkpoint`] | state as records of a compacted topic, and back |
//! | [`wire`] | how state is written as bytes, and how its layout changes from version to version |

pub mod checkpoint;
pub mod processor;
pub mod stage;
pub mod wire;
