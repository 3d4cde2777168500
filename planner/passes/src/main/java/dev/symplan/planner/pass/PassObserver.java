package dev.symplan.planner.pass;

import com.google.common.base.Ascii;
import dev.symplan.ir.graph.Program;
import dev.symplan.planner.plan.Plan;
import java.util.function.Supplier;

/** Is told what each pass made, and may measure how long it took. */
public interface PassObserver {

  /** The passes that can be looked into, in their order. */
  enum Pass {
    SOURCE,
    NORMALIZE,
    BUCKET,
    CHUNK,
    REORDER,
    SELECT,
    REALIZE,
    SCHEDULE,
    ALLOCATE,
    ELIDE_BARRIERS,
    VERIFY;

    /** {@return the name in files} */
    public String text() {
      return Ascii.toLowerCase(name());
    }
  }

  /** Looks away. */
  PassObserver NONE = new PassObserver() {};

  /** {@return what the work gives} It may be asked for several times of one pass: for drafts. */
  default <T> T time(Pass pass, Supplier<T> work) {
    return work.get();
  }

  /** A pass gave graphs. */
  default void graphs(Pass pass, Program program) {}

  /** A pass decided something that a plan of the same graphs shows. */
  default void plan(Pass pass, Plan plan) {}
}
