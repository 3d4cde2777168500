package dev.symplan.codegen.cuda;

import dev.symplan.ir.diag.Span;

/** Something has no CUDA implementation; the message names op and source line. */
public final class UnsupportedOnGpu extends RuntimeException {
  private static final long serialVersionUID = 1L;

  UnsupportedOnGpu(String what, String name, Span span) {
    super(
        "%s: '%s' (%s) can be planned, but not run on GPUs yet"
            .formatted(what, name, span.shortForm()));
  }
}
