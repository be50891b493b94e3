//! Numbers of streams and events.

/// Stream: a queue of work. Work of one stream runs in order; different streams run concurrently if the
/// device can.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Stream(pub u32);

/// Number of an event, a point in a stream that others can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(pub u64);
