package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.primitives.ImmutableLongArray;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class RepeatedAddressesTest {
  private final RepeatedAddresses<Integer> repeated = new RepeatedAddresses<>();
  private final AtomicInteger made = new AtomicInteger();

  private Optional<Integer> get(long address) {
    return repeated.get(ImmutableLongArray.of(address, 7), made::incrementAndGet);
  }

  @Test
  void makesOneForTheSecondTime() {
    assertThat(get(1)).isEmpty();
    assertThat(get(2)).isEmpty();
    assertThat(get(1)).contains(1);
    assertThat(get(1)).contains(1);
    assertThat(get(2)).contains(2);
    assertThat(repeated.all()).containsExactlyInAnyOrder(1, 2);
    assertThat(repeated.dropped()).isEmpty();
  }

  @Test
  void dropsWhatWasNotUsedForLongest() {
    for (int i = 0; i <= RepeatedAddresses.MAX_MADE; i++) {
      assertThat(get(i)).isEmpty();
    }
    for (int i = 0; i < RepeatedAddresses.MAX_MADE; i++) {
      assertThat(get(i)).contains(i + 1);
    }
    assertThat(get(0)).contains(1);
    assertThat(get(RepeatedAddresses.MAX_MADE)).contains(RepeatedAddresses.MAX_MADE + 1);
    assertThat(repeated.dropped()).containsExactly(2);
    assertThat(repeated.dropped()).isEmpty();
    assertThat(repeated.all()).hasSize(RepeatedAddresses.MAX_MADE).doesNotContain(2);
    // It begins anew.
    assertThat(get(1)).isEmpty();
  }

  @Test
  void forgetsAddressesThatDoNotComeAgain() {
    assertThat(get(0)).isEmpty();
    for (int i = 1; i <= RepeatedAddresses.MAX_SEEN; i++) {
      assertThat(get(i)).isEmpty();
    }
    assertThat(get(0)).isEmpty();
    assertThat(made).hasValue(0);
  }

  @Test
  void dropsWhatItMadeWithItsAddresses() {
    assertThat(get(0)).isEmpty();
    assertThat(get(0)).contains(1);
    for (int i = 1; i <= RepeatedAddresses.MAX_SEEN; i++) {
      assertThat(get(i)).isEmpty();
    }
    assertThat(repeated.dropped()).containsExactly(1);
    assertThat(repeated.all()).isEmpty();
  }
}
