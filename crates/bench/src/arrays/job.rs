//! Jobs that evaluate arrays.

use crate::error::Failure;
use crate::job::{Job, Work};
use broadloom::array::evaluate_all;
use broadloom::graph::{Node, Summary};
use broadloom::{Array, array};
use std::cell::RefCell;
use std::rc::Rc;

/// Makes a job that builds arrays and computes them in one plan. The judge gets the arrays of the last
/// repetition.
pub(crate) fn repeated<T: array::Element>(
    work: Work,
    expression: impl Fn() -> array::Result<Vec<Array<T>>> + 'static,
    judge: impl Fn(&[Vec<T>]) -> Result<f64, Failure> + 'static,
) -> Job {
    let expression = Rc::new(expression);
    let again = expression.clone();
    let planned = move || {
        let nodes: Vec<Node> = again()?.iter().map(|array| array.node().clone()).collect();
        match nodes.first() {
            Some(first) => Ok(first.context().explain(&nodes)?),
            None => Ok(Summary { kernels: vec![], peak_bytes: 0 }),
        }
    };
    let last: Rc<RefCell<Vec<Array<T>>>> = Rc::default();
    let results = last.clone();
    let repetition = move || {
        let arrays = expression()?;
        evaluate_all(&arrays.iter().map(Array::node).collect::<Vec<_>>())?;
        *last.borrow_mut() = arrays;
        Ok(())
    };
    let judge = move |_| {
        let values: Vec<Vec<T>> = results.borrow().iter().map(Array::to_vec).collect::<array::Result<_>>()?;
        judge(&values)
    };
    Job::new(work, judge).expression(repetition).planned(planned)
}
