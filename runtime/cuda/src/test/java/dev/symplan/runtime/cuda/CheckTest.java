package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.symplan.runtime.failure.RunException;
import org.bytedeco.cuda.global.cudart;
import org.junit.jupiter.api.Test;

class CheckTest {

  /** CUDA does not say which kernel it was, so that the message must say how to find out. */
  @Test
  void aKernelThatTrapsIsFoundOnTheHost() {
    assertThatThrownBy(() -> new Check(3).run(cudart.cudaErrorLaunchFailure))
        .isInstanceOf(RunException.class)
        .hasMessageContainingAll("rank 3", "an index is out of range", "host backend names the op");
    assertThatCode(() -> new Check(3).run(cudart.cudaSuccess)).doesNotThrowAnyException();
  }
}
