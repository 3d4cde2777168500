package dev.symplan.runtime.cuda;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSortedMap;
import com.google.common.primitives.ImmutableLongArray;
import dev.symplan.codegen.Lowering;
import dev.symplan.codegen.cuda.DeviceLowering;
import dev.symplan.codegen.cuda.DeviceProgram;
import dev.symplan.codegen.cuda.DeviceStep.Product;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class ProductChoicesTest {
  private static final String MACHINE = "NVIDIA H200, driver 13000";

  @TempDir private Path folder;

  private static ProductAlgorithm algorithm(long first) {
    return new ProductAlgorithm(
        ImmutableLongArray.copyOf(
            IntStream.range(0, 8).mapToLong(i -> i == 0 ? first : -i).toArray()));
  }

  private static ProductChoices choices(String machine, Object... algorithms) {
    var map = ImmutableSortedMap.<String, ProductAlgorithm>naturalOrder();
    for (int i = 0; i < algorithms.length; i += 2) {
      map.put((String) algorithms[i], algorithm((Integer) algorithms[i + 1]));
    }
    return new ProductChoices(machine, map.buildOrThrow());
  }

  @Test
  void textHasAll() {
    var choices = choices(MACHINE, "a", 1, "b", -1);
    assertThat(ProductChoices.parse(choices.text())).contains(choices);
    assertThat(ProductChoices.parse(ProductChoices.none(MACHINE).text()))
        .contains(ProductChoices.none(MACHINE));
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "",
        "machine",
        "machine\nshape\n",
        "machine\nshape 1.2.3.4.5.6.7\n",
        "machine\nshape 1.2.3.4.5.6.7.8.9\n",
        "machine\nshape 1.2.3.4.5.6.7.g\n",
        "machine\nshape 1.2.3.4.5.6.7.8",
        "machine\n 1.2.3.4.5.6.7.8\n"
      })
  void otherTextHasNone(String text) {
    assertThat(ProductChoices.parse(text)).isEmpty();
  }

  @Test
  void lowestRankDecides() {
    assertThat(
            ProductChoices.agreed(
                List.of(
                    choices(MACHINE, "a", 1),
                    choices(MACHINE, "a", 2, "b", 3),
                    choices(MACHINE, "b", 4))))
        .isEqualTo(choices(MACHINE, "a", 1, "b", 3));
  }

  @Test
  void differentMachinesAgreeOnNothing() {
    assertThat(
            ProductChoices.agreed(List.of(choices(MACHINE, "a", 1), choices("other", "b", 2)))
                .algorithms())
        .isEmpty();
  }

  @Test
  void processesAgree() {
    var agreed = new ConcurrentHashMap<Integer, ProductChoices>();
    var failures =
        Worlds.failures(
            3,
            world -> {
              int rank = world.rank();
              var own = choices(MACHINE, "a", rank, "b" + rank, rank);
              agreed.put(rank, own.agreed(world));
            });
    assertThat(failures).containsOnly("");
    assertThat(agreed).hasSize(3);
    assertThat(agreed.values()).containsOnly(choices(MACHINE, "a", 0, "b0", 0, "b1", 1, "b2", 2));
  }

  private static DeviceProgram program(int rank, String... products) {
    var text =
        """
        graph version 1
        graph p(x: bf16[64, 512], w: bf16[512, 512], v: bf16[512, 256], b: bf16[512], f: f32[64, 512], g: f32[512, 512], k: f8e4m3fn[64, 512], l: f8e4m3fn[512, 512], m: f8e5m2[512, 512], s: f32[64, 1], t: f32[1, 512], u: f32[]) {
          %s
          return %s
        }
        """
            .formatted(
                String.join(
                    "\n  ",
                    IntStream.range(0, products.length)
                        .mapToObj(i -> "r%s = %s".formatted(i, products[i]))
                        .toList()),
                String.join(
                    ", ", IntStream.range(0, products.length).mapToObj(i -> "r" + i).toList()));
    var lowered = DeviceLowering.lower(Lowering.lower(LocalPrograms.plan(text))).getFirst();
    return new DeviceProgram(
        rank, lowered.steps(), lowered.begins(), lowered.events(), lowered.pads());
  }

  @Test
  void eachShapeIsChosenOnce() {
    var programs =
        ImmutableList.of(
            program(0, "aten::mm(x, w)", "aten::mm(x, v)", "aten::mm(x, w)"),
            program(1, "aten::mm(x, v)", "aten::addmm(b, x, w)", "aten::mm(f, g)"),
            program(2, "aten::mm(f, g)"));
    assertThat(ProductChoices.chosenBy(0, programs)).hasSize(2);
    assertThat(ProductChoices.chosenBy(1, programs))
        .extracting(product -> product.bias().isPresent())
        .containsExactly(true, false);
    assertThat(ProductChoices.chosenBy(2, programs)).isEmpty();
  }

  /** Offsets that are aligned in the same way make no difference; all else does. */
  @Test
  void shapesAreWhatTheirTextSays() {
    var products =
        program(
                0,
                "aten::mm(x, w)",
                "aten::mm(x, v)",
                "aten::mm(f, g)",
                "aten::addmm(b, x, w)",
                "aten::addmm(r0, x, w)",
                "aten::mm(x, w)")
            .steps()
            .stream()
            .filter(Product.class::isInstance)
            .map(step -> ProductShape.of((Product) step))
            .toList();
    assertThat(products).hasSize(6);
    assertThat(products.getLast()).isEqualTo(products.getFirst());
    assertThat(products.subList(0, 5)).doesNotHaveDuplicates();
    assertThat(products.subList(0, 5)).extracting(ProductShape::text).doesNotHaveDuplicates();
  }

  @Test
  void shapesOfShortFloatsAreWhatTheirTextSays() {
    var products =
        program(
                0,
                "aten::t(l)",
                "aten::t(m)",
                "aten::_scaled_mm(k, r0, u, u, None, None, torch.bfloat16)",
                "aten::_scaled_mm(k, r1, u, u, None, None, torch.bfloat16)",
                "aten::_scaled_mm(k, r0, u, u, None, None, torch.bfloat16, True)",
                "aten::_scaled_mm(k, r0, u, u, b, None, torch.bfloat16)",
                "aten::_scaled_mm(k, r0, u, u, None, None, torch.float16)",
                "aten::_scaled_mm(k, r0, s, t, None, None, torch.bfloat16)",
                "aten::_scaled_mm(k, r0, s, t, None, None, torch.bfloat16, True)",
                "aten::_scaled_mm(k, r0, u, u, None, None, torch.float32, True)",
                // Less precise than an f32; rows by tensor and columns by themselves; too few bits.
                "aten::_scaled_mm(k, r0, u, u, None, None, torch.float32)",
                "aten::_scaled_mm(k, r0, u, t, None, None, torch.bfloat16)",
                "aten::_scaled_mm(m, r1, u, u, None, None, torch.bfloat16)")
            .steps()
            .stream()
            .filter(Product.class::isInstance)
            .map(step -> ProductShape.of((Product) step))
            .toList();
    assertThat(products).hasSize(8).doesNotHaveDuplicates();
    assertThat(products).extracting(ProductShape::text).doesNotHaveDuplicates();
  }

  private ProductCache cache() {
    return new ProductCache(Optional.of(folder.resolve("made").resolve("here")));
  }

  private Path file() throws Exception {
    try (var files = Files.walk(folder)) {
      return files.filter(Files::isRegularFile).findFirst().orElseThrow();
    }
  }

  @Test
  void keepsChoices() {
    var cache = cache();
    cache.add(choices(MACHINE, "a", 1));
    cache.add(choices("other", "a", 5));
    cache().add(choices(MACHINE, "b", 2));
    cache.add(choices(MACHINE, "c", 3));
    assertThat(cache().read(MACHINE)).isEqualTo(choices(MACHINE, "a", 1, "b", 2, "c", 3));
    assertThat(cache().read("other")).isEqualTo(choices("other", "a", 5));
    assertThat(cache().read("third")).isEqualTo(ProductChoices.none("third"));
  }

  @Test
  void processKeepsItsOwn() {
    var cache = new ProductCache(Optional.empty());
    cache.add(choices(MACHINE, "a", 1));
    assertThat(cache.read(MACHINE)).isEqualTo(choices(MACHINE, "a", 1));
  }

  @Test
  void damagedFilesCountAsNone() throws Exception {
    cache().add(choices(MACHINE, "a", 1, "b", 2));
    var text = Files.readString(file());
    for (int i = 0; i < text.length(); i++) {
      Files.writeString(file(), text.substring(0, i));
      assertThat(cache().read(MACHINE).algorithms()).isEmpty();
      var changed = new StringBuilder(text);
      changed.setCharAt(i, (char) (text.charAt(i) ^ 1));
      Files.writeString(file(), changed);
      assertThat(cache().read(MACHINE).algorithms()).isEmpty();
    }
    Files.write(file(), new byte[] {(byte) 0xff, (byte) 0xfe, 0});
    assertThat(cache().read(MACHINE).algorithms()).isEmpty();
    cache().add(choices(MACHINE, "c", 3));
    assertThat(cache().read(MACHINE)).isEqualTo(choices(MACHINE, "c", 3));
  }

  /** As if another machine's name led to the same file. */
  @Test
  void fileOfAnotherMachineCountsAsNone() throws Exception {
    cache().add(choices(MACHINE, "a", 1));
    var own = file();
    var text = Files.readString(own);
    Files.delete(own);
    cache().add(choices("other", "b", 2));
    Files.writeString(file(), text);
    assertThat(cache().read("other").algorithms()).isEmpty();
  }

  @Test
  void folderThatCannotBeMadeIsDoneWithout() throws Exception {
    var inTheWay = Files.writeString(folder.resolve("file"), "");
    var cache = new ProductCache(Optional.of(inTheWay.resolve("below")));
    cache.add(choices(MACHINE, "a", 1));
    assertThat(cache.read(MACHINE)).isEqualTo(choices(MACHINE, "a", 1));
  }

  @Test
  void environmentNamesTheFolder() {
    assertThat(ProductCache.folder(Map.of("HOME", "/home/a")))
        .contains(Path.of("/home/a/.cache/symplan"));
    assertThat(ProductCache.folder(Map.of("HOME", "/home/a", "XDG_CACHE_HOME", "/var/cache")))
        .contains(Path.of("/var/cache/symplan"));
    assertThat(ProductCache.folder(Map.of("HOME", "/home/a", "XDG_CACHE_HOME", "cache")))
        .contains(Path.of("/home/a/.cache/symplan"));
    assertThat(ProductCache.folder(Map.of("HOME", "/home/a", "SYMPLAN_CACHE", "/tmp/b")))
        .contains(Path.of("/tmp/b"));
    assertThat(ProductCache.folder(Map.of("HOME", "/home/a", "SYMPLAN_CACHE", "off"))).isEmpty();
    assertThat(ProductCache.folder(Map.of())).isEmpty();
  }
}
