//! Execution: plans that are kept, fitted to sizes and launched; templates and lanes.

pub(crate) mod executor;
pub(crate) mod fit;
pub(crate) mod lane;
pub(crate) mod lane_results;
pub(crate) mod plan_cache;
pub(crate) mod stage;
pub(crate) mod template;
