#pragma once
#include <hdf5.h>

#include <mutex>
#include <string>
#include <utility>

namespace ronda::hdf5 {

/// HDF5 has one state for the whole process, and its library need not have been built for threads.
[[nodiscard]] std::unique_lock<std::mutex> lock();

/// While it lives HDF5 prints nothing of its errors.
class Silence {
 public:
  Silence() {
    H5Eget_auto2(H5E_DEFAULT, &function_, &data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  ~Silence() { H5Eset_auto2(H5E_DEFAULT, function_, data_); }
  Silence(const Silence&) = delete;
  Silence& operator=(const Silence&) = delete;

 private:
  H5E_auto2_t function_ = nullptr;
  void* data_ = nullptr;
};

/// What HDF5 says of its last error.
[[nodiscard]] std::string last_error();

/// Something of HDF5's, closed where this object ends. Empty where HDF5 gave none.
class Handle {
 public:
  using Close = herr_t (*)(hid_t);
  Handle() = default;
  Handle(hid_t id, Close close) : id_(id), close_(close) {}
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)), close_(other.close_) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    std::swap(close_, other.close_);
    return *this;
  }

  [[nodiscard]] bool empty() const noexcept { return id_ < 0; }
  [[nodiscard]] hid_t id() const noexcept { return id_; }

 private:
  hid_t id_ = H5I_INVALID_HID;
  Close close_ = nullptr;
};

}  // namespace ronda::hdf5
