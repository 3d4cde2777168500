package dev.symplan.runtime.cuda;

import org.bytedeco.javacpp.Pointer;

/** An address that somebody else owns. */
final class DevicePointer extends Pointer {
  DevicePointer(long at) {
    address = at;
  }

  void moveTo(long at) {
    address = at;
  }
}
