//! Tests that the call reports errors, with the operation and the mismatch.

use broadloom_array::{Array, Boundary, Context, Result, Segments, Span, span};
use broadloom_device::Device;
use broadloom_interp::Interp;

fn context() -> Context {
    Context::new(&Device::new(Interp::new(broadloom_interp::Options::default())))
}

fn told<T>(result: Result<T>) -> String {
    match result {
        Ok(_) => "no error".into(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn shapes() -> Result<()> {
    let context = context();
    let a = Array::<i32>::positions(&context, [2, 3], 0)?;
    let b = Array::<i32>::positions(&context, [3, 2], 0)?;
    assert_eq!(told(a.add(&b)), "`+`: the shapes [2, 3] and [3, 2] do not fit together");
    assert_eq!(told(a.lt(&b)), "`<`: the shapes [2, 3] and [3, 2] do not fit together");
    assert_eq!(told(a.inner(&a)), "`inner`: the shapes [2, 3] and [2, 3] do not fit together");
    assert_eq!(told(a.reshape([7])), "`reshape`: the shapes [2, 3] and [7] do not fit together");
    assert_eq!(told(a.broadcast_to([4, 3])), "`broadcast`: the shapes [2, 3] and [4, 3] do not fit together");
    assert_eq!(told(Array::concatenate(0, &[&a, &b])), "`concatenate`: the shapes [2, 3] and [3, 2] do not fit together");
    assert_eq!(told(Array::new(&context, &[1, 2, 3], [2, 2])), "`new`: 3 values for the shape [2, 2], which has 4");
    assert_eq!(told(a.item()), "`item`: 6 values for the shape [], which has 1");
    // The error is known before anything is computed.
    let large = Array::full(&context, [1 << 39], 0u8)?.add(1)?;
    assert_eq!(told(large.item()), "`item`: 549755813888 values for the shape [], which has 1");
    Ok(())
}

#[test]
fn axes_and_ranges() -> Result<()> {
    let context = context();
    let a = Array::<i32>::positions(&context, [2, 3], 0)?;
    assert_eq!(told(a.sum_along(&[2])), "`sum`: axis 2 of an array of shape [2, 3], whose last axis is 1");
    assert_eq!(told(a.sum_along(&[1, 1])), "`sum`: axis 1 of an array of shape [2, 3], which is named twice");
    assert_eq!(told(a.sum().sum_along(&[0])), "`sum`: axis 0 of an array of shape [], which has no axes");
    assert_eq!(told(a.transpose(&[0, 0])), "`transpose`: axis 0 of an array of shape [2, 3], which is named twice");
    assert_eq!(told(a.argsort(2)), "`argsort`: axis 2 of an array of shape [2, 3], whose last axis is 1");
    assert_eq!(told(a.take(2, &a, Boundary::Clamp)), "`take`: axis 2 of an array of shape [2, 3], whose last axis is 1");
    let mean = told(a.cast::<f32>()?.mean_along(&[2]));
    assert_eq!(mean, "`mean`: axis 2 of an array of shape [2, 3], whose last axis is 1");
    assert_eq!(told(a.sort_by(&a)), "`sort_by` of an array of shape [2, 3]: expected an array with one axis");
    assert_eq!(told(a.transpose(&[0])), "`transpose` of an array of shape [2, 3]: 1 numbers are given for 2 axes");
    assert_eq!(told(a.index_axis(0, 2)), "`index_axis` of an array of shape [2, 3]: indices from 2 to 2 leave axis 0");
    assert_eq!(
        told(a.drop_axis(1)),
        "`drop_axis` of an array of shape [2, 3]: axis 1 has extent 3, and only an axis of extent 1 can be removed without an index"
    );
    assert_eq!(told(a.drop_axis(2)), "`drop_axis`: axis 2 of an array of shape [2, 3], whose last axis is 1");
    assert_eq!(told(a.slice(&span![5])), "`slice` of an array of shape [2, 3]: axis 0 has no index 5");
    assert_eq!(told(a.slice(&[Span::ALL.by(0)])), "`slice` of an array of shape [2, 3]: a step of 0 along axis 0");
    assert_eq!(told(a.slice(&span![.., .., ..])), "`slice` of an array of shape [2, 3]: 3 axes are named");
    let none = Array::<i32>::iota(&context, 0)?;
    assert_eq!(told(none.pad(&[(1, 1)], 7)?.to_vec()), "no error");
    assert_eq!(
        told(none.extend(&[(1, 1)], Boundary::Clamp)),
        "`extend` of an array of shape [0]: axis 0 has no elements to take"
    );
    assert_eq!(told(none.argmax(0)), "`argmax` of an array of shape [0]: axis 0 has no elements");
    assert_eq!(
        told(Array::full(&context, [1 << 30, 1 << 30], 0u8)),
        "`fill` of an array of shape [1073741824, 1073741824]: an array has at most 8 axes and 2^40 elements"
    );
    assert_eq!(
        told(a.shift(&[i64::MIN, 0], Boundary::Wrap)),
        "`shift` of an array of shape [2, 3]: a number along axis 0 is too large"
    );
    Ok(())
}

#[test]
fn types_and_devices() -> Result<()> {
    let (one, other) = (context(), context());
    let a = Array::<i32>::iota(&one, 3)?;
    let b = Array::<i32>::iota(&other, 3)?;
    assert_eq!(told(a.add(&b)), "`+`: the arrays belong to two contexts, both on `interp`; `to_context` copies one of them");
    assert_eq!(a.add(&b.to_context(&one)?)?.to_vec()?, [0, 2, 4]);
    assert_eq!(told(Array::<f32>::from_node(a.node().clone())), "`from_node`: the types `f32` and `i32` do not fit together");
    let window = a.window(Boundary::Clamp, |w| w.at(&[0, 1]));
    let window = told(window);
    assert!(window.starts_with("`window` is not valid: a window of 1 axes is looked at with 2 offsets (crates"), "{window}");
    // A consequence of an error is not reported.
    assert!(!window.contains(';'), "{window}");
    Ok(())
}

#[test]
#[should_panic(expected = "`+`: the shapes [2] and [3] do not fit together")]
fn operators_panic() {
    let context = context();
    let (Ok(a), Ok(b)) = (Array::<i32>::iota(&context, 2), Array::<i32>::iota(&context, 3)) else { return };
    let _ = a + b;
}

#[test]
fn scatters_and_segments() -> Result<()> {
    let context = context();
    let a = Array::<i32>::positions(&context, [2, 3], 0)?;
    let (line, long) = (Array::line(&context, &[1, 2])?, Array::line(&context, &[1, 2, 3])?);
    assert_eq!(told(a.scatter(&[&line], &line)), "`scatter` of an array of shape [2, 3]: 1 index arrays are given");
    assert_eq!(told(a.scatter(&[&line, &long], &line)), "`scatter`: the shapes [2] and [3] do not fit together");
    assert_eq!(told(line.scatter_sum(&[&line], &long)), "`scatter sum`: the shapes [2] and [3] do not fit together");
    let other = Array::line(&self::context(), &[1, 2])?;
    assert_eq!(
        told(line.scatter_max(&[&line], &other)),
        "`scatter max`: the arrays belong to two contexts, both on `interp`; `to_context` copies one of them"
    );
    let segments = Segments::from_lengths(&line, 3)?;
    assert_eq!(told(long.segmented_sum(&segments)?.to_vec()), "no error");
    assert_eq!(told(line.segmented_sum(&segments)), "`segmented sum`: the shapes [2] and [3] do not fit together");
    assert_eq!(told(a.segmented_sort(&segments)), "`segmented sort`: the shapes [2, 3] and [3] do not fit together");
    assert_eq!(
        told(a.segmented_cumulative_max(&segments)),
        "`segmented max scan`: the shapes [2, 3] and [3] do not fit together"
    );
    let none = Array::<i32>::iota(&context, 0)?;
    assert_eq!(
        told(Segments::from_offsets(&none, 3)),
        "`segments` of an array of shape [0]: there is one more offset than there are segments"
    );
    assert_eq!(told(Segments::from_offsets(&a, 3)), "`segments` of an array of shape [2, 3]: expected an array with one axis");
    assert_eq!(told(Segments::from_lengths(&a, 3)), "`segments` of an array of shape [2, 3]: expected an array with one axis");
    Ok(())
}
