//! How front ends write kernels.
