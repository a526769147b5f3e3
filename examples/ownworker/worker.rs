//! A worker for Plumb in Rust, on the kit in C: no crates, rustc alone.
use std::os::raw::{c_char, c_int};

const RANK: usize = 16;
const FLOAT32: i32 = 8;
const FLOAT64: i32 = 9;

#[repr(C)]
#[derive(Clone, Copy)]
struct Tensor {
    data: *mut u8,
    count: i64,
    dtype: i32,
    rank: i32,
    number: i32,
    shape: [i64; RANK],
    strides: [i64; RANK],
}

/// A text of C.
macro_rules! text {
    ($t:expr) => {
        concat!($t, "\0").as_ptr() as *const c_char
    };
}

/// What plumb_worker.h calls plumb_call.
#[repr(C)]
struct Call {
    _private: [u8; 0],
}

#[repr(C)]
struct Function {
    target: *const c_char,
    function: Option<extern "C" fn(*mut Call)>,
    flags: i32,
}

#[repr(C)]
struct Subject {
    name: *const c_char,
    version: *const c_char,
    functions: *const Function,
    refuses: i32,
}

extern "C" {
    fn plumb_serve(subject: *const Subject) -> c_int;
    fn plumb_tensor_arg(call: *mut Call, position: c_int, name: *const c_char) -> Tensor;
    fn plumb_operand(call: *mut Call, position: c_int, name: *const c_char) -> Tensor;
    fn plumb_pair(call: *mut Call, a: *mut Tensor, b: *mut Tensor);
    fn plumb_result(call: *mut Call, dtype: i32, rank: i32, shape: *const i64) -> Tensor;
    fn plumb_unsupported(call: *mut Call, format: *const c_char, ...);
    fn plumb_name(dtype: i32) -> *const c_char;
}

/// The elements of a contiguous tensor, which last until the case ends.
unsafe fn elements<'a, T>(t: &Tensor) -> &'a mut [T] {
    if t.count == 0 {
        return &mut [];
    }
    std::slice::from_raw_parts_mut(t.data as *mut T, t.count as usize)
}

unsafe fn map(call: *mut Call, f32_of: fn(f32) -> f32, f64_of: fn(f64) -> f64) {
    let x = plumb_tensor_arg(call, 0, text!("input"));
    let y = plumb_result(call, x.dtype, x.rank, x.shape.as_ptr());
    match x.dtype {
        FLOAT32 => elements(&y).iter_mut().zip(elements(&x)).for_each(|(y, x)| *y = f32_of(*x)),
        FLOAT64 => elements(&y).iter_mut().zip(elements(&x)).for_each(|(y, x)| *y = f64_of(*x)),
        other => plumb_unsupported(call, text!("%s"), plumb_name(other)),
    }
}

extern "C" fn relu(call: *mut Call) {
    unsafe { map(call, |x| if x < 0.0 { 0.0 } else { x }, |x| if x < 0.0 { 0.0 } else { x }) }
}

extern "C" fn floor(call: *mut Call) {
    unsafe { map(call, f32::floor, f64::floor) }
}

extern "C" fn mul(call: *mut Call) {
    unsafe {
        let (mut a, mut b) = (plumb_operand(call, 0, text!("input")), plumb_operand(call, 1, text!("other")));
        plumb_pair(call, &mut a, &mut b);
        let y = plumb_result(call, a.dtype, a.rank, a.shape.as_ptr());
        match a.dtype {
            FLOAT32 => product::<f32>(&a, &b, &y),
            FLOAT64 => product::<f64>(&a, &b, &y),
            other => plumb_unsupported(call, text!("%s"), plumb_name(other)),
        }
    }
}

unsafe fn product<T: Copy + std::ops::Mul<Output = T>>(a: &Tensor, b: &Tensor, y: &Tensor) {
    let (a, b) = (elements::<T>(a), elements::<T>(b));
    for (i, y) in elements::<T>(y).iter_mut().enumerate() {
        *y = a[i] * b[i];
    }
}

fn main() {
    let row = |target: *const c_char, function: Option<extern "C" fn(*mut Call)>| Function { target, function, flags: 0 };
    let functions = [
        row(text!("torch.relu"), Some(relu)),
        row(text!("torch.floor"), Some(floor)),
        row(text!("torch.mul"), Some(mul)),
        row(std::ptr::null(), None),
    ];
    let subject = Subject { name: text!("ownworker-rust"), version: text!("1"), functions: functions.as_ptr(), refuses: 0 };
    std::process::exit(unsafe { plumb_serve(&subject) });
}
