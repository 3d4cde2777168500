package dev.symplan.codegen.model;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.common.collect.ImmutableList;
import com.google.common.collect.ImmutableSet;
import com.google.common.collect.Sets;
import dev.symplan.codegen.Transfer;
import dev.symplan.codegen.model.Sequence.Collective;
import dev.symplan.codegen.model.Sequence.Layout;
import dev.symplan.codegen.model.Sequence.Read;
import dev.symplan.codegen.model.Sequence.Write;
import dev.symplan.ir.op.CollectiveSpec.Kind;
import dev.symplan.ir.testkit.Golden;
import dev.symplan.planner.machine.Requirement;
import dev.symplan.planner.machine.Variant;
import dev.symplan.planner.machine.VariantSpec;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Every variant that reaches peers, on buffers that are used again and again: with its two barriers
 * it is safe and ends, and without one of them it is not. Variants of the same transfers are one
 * model.
 */
class VariantModelTest {

  /** Variants that meet by themselves, in NCCL or a custom op, or not at all. */
  private static final ImmutableSet<Variant> WITHOUT_MODELS =
      Sets.immutableEnumSet(Variant.LOCAL, Variant.NCCL, Variant.CUSTOM);

  /** The common part of some variants of a kind. */
  private record Case(Kind kind, List<Variant> variants) {
    private VariantSpec spec() {
      return VariantSpec.of(kind, variants.getFirst());
    }

    @Override
    public String toString() {
      return kind.text()
          + " "
          + variants.stream().map(Variant::text).collect(Collectors.joining(", "));
    }

    String file() {
      return kind.text() + "-" + variants.getFirst().text();
    }

    Sequence sequence(int ranks) {
      return Sequence.of(
          this.toString(), ranks, new Write("x"), new Collective(spec(), "x", "y"), new Read("y"));
    }

    Sequence inPlace(int ranks) {
      return Sequence.of(
          this + " in place",
          ranks,
          new Write("x"),
          new Collective(spec(), "x", "x"),
          new Read("x"));
    }
  }

  static List<Case> cases() {
    var cases = new ArrayList<Case>();
    for (var kind : Kind.values()) {
      Map<List<ImmutableList<Transfer>>, List<Variant>> variants = new LinkedHashMap<>();
      for (var spec : VariantSpec.ofKind(kind)) {
        if (kind != Kind.CUSTOM && (spec.needsSymmetricOperand() || spec.needsSymmetricResult())) {
          variants
              .computeIfAbsent(Steps.of(spec, 3, true, true, Layout.RUNS), _ -> new ArrayList<>())
              .add(spec.variant());
        }
      }
      variants.values().forEach(same -> cases.add(new Case(kind, same)));
    }
    return cases;
  }

  @Test
  void everyVariantThatReachesPeersHasModels() {
    var modelled = new ArrayList<String>();
    for (var model : cases()) {
      model.variants().forEach(variant -> modelled.add(name(model.kind(), variant)));
    }
    PushModelTest.variants().forEach(variant -> modelled.add(name(PushModelTest.KIND, variant)));
    var meeting = new ArrayList<String>();
    for (var kind : Kind.values()) {
      for (var variant : Variant.values()) {
        if (variant.implementsKind(kind) && !WITHOUT_MODELS.contains(variant)) {
          meeting.add(name(kind, variant));
        }
      }
    }
    assertThat(modelled).containsExactlyInAnyOrderElementsOf(meeting);
  }

  private static String name(Kind kind, Variant variant) {
    return kind.text() + " as " + variant.text();
  }

  @ParameterizedTest
  @MethodSource("cases")
  void modelsAreReadable(Case variant) {
    Golden.check("models/" + variant.file() + ".pml", Promela.of(variant.sequence(3)));
  }

  @Test
  void safeWithBothBarriers() {
    Spin.assumePresent();
    var models = new LinkedHashMap<String, String>();
    for (var variant : cases()) {
      models.putAll(Spin.ofRanks(variant.toString(), ranks -> Promela.of(variant.sequence(ranks))));
    }
    Spin.assertSafe(models);
  }

  @Test
  void unsafeWithoutOneOfThem() {
    Spin.assumePresent();
    var models = new LinkedHashMap<String, String>();
    for (var variant : cases()) {
      var whole = variant.sequence(2);
      models.put(variant + " without start", Promela.of(whole.with(change(whole, true))));
      models.put(variant + " without end", Promela.of(whole.with(change(whole, false))));
    }
    Spin.assertUnsafe(models, "assertion violated.*");
  }

  private static Stream<VariantSpec> ofRows() {
    return Stream.of(Kind.ALL_GATHER, Kind.REDUCE_SCATTER, Kind.ALL_TO_ALL)
        .flatMap(kind -> VariantSpec.ofKind(kind).stream())
        .filter(spec -> spec.needsSymmetricOperand() || spec.needsSymmetricResult())
        .filter(spec -> !spec.requirements().contains(new Requirement.Runs()));
  }

  /** Slices of several rows, with those of other ranks between them. */
  @Test
  void rowsNeedBothBarriersToo() {
    Spin.assumePresent();
    var moved =
        ofRows()
            .map(spec -> new Collective(spec, "x", "y").of(Layout.ROWS))
            .collect(ImmutableList.toImmutableList());
    needBothBarriers(moved);
    var models = new LinkedHashMap<String, String>();
    moved.forEach(own -> models.put(own + " of 3 ranks", rows(own, 3)));
    Spin.assertSafe(models);
  }

  /** One of those whose ranks do the same. */
  private static Stream<VariantSpec> ofRowsApart() {
    return Stream.of(Kind.values())
        .flatMap(kind -> VariantSpec.ofKind(kind).stream())
        .filter(VariantSpec::readsRows)
        // The models of variants that go through workspaces say nothing of where operands lie.
        .filter(spec -> spec.needsSymmetricOperand() || spec.needsSymmetricResult())
        .collect(
            Collectors.toMap(
                spec -> Steps.of(spec, 2, true, true, Layout.APART),
                spec -> spec,
                (first, _) -> first,
                LinkedHashMap::new))
        .values()
        .stream();
  }

  /** Operands with bytes between their rows, which a local op writes and nothing moves. */
  @Test
  void rowsApartNeedBothBarriersToo() {
    Spin.assumePresent();
    needBothBarriers(
        ofRowsApart()
            .map(spec -> new Collective(spec, "x", "y").of(Layout.APART))
            .collect(ImmutableList.toImmutableList()));
  }

  private static void needBothBarriers(ImmutableList<Collective> moved) {
    var safe = new LinkedHashMap<String, String>();
    var unsafe = new LinkedHashMap<String, String>();
    for (var own : moved) {
      safe.put(own.toString(), rows(own, 2));
      for (var without : List.of(own.noStart(), own.noEnd())) {
        unsafe.put(without.toString(), rows(without, 2));
      }
    }
    Spin.assertSafe(safe);
    Spin.assertUnsafe(unsafe, "assertion violated.*");
  }

  private static String rows(Collective moved, int ranks) {
    return Promela.of(Sequence.of("rows", ranks, new Write("x"), moved, new Read("y")));
  }

  private static List<Sequence.Step> change(Sequence sequence, boolean start) {
    return sequence.steps().stream()
        .map(step -> step instanceof Collective c ? start ? c.noStart() : c.noEnd() : step)
        .toList();
  }

  @Test
  void inPlaceWhereTheVariantAllowsIt() {
    Spin.assumePresent();
    var safe = new LinkedHashMap<String, String>();
    var unsafe = new LinkedHashMap<String, String>();
    cases().stream()
        .filter(variant -> variant.kind() == Kind.ALL_REDUCE)
        .forEach(
            variant -> {
              boolean allowed = variant.spec().allowsInPlace();
              assertThat(variant.variants())
                  .allSatisfy(
                      v ->
                          assertThat(VariantSpec.of(variant.kind(), v).allowsInPlace())
                              .isEqualTo(allowed));
              if (allowed) {
                safe.putAll(
                    Spin.ofRanks(variant.toString(), ranks -> Promela.of(variant.inPlace(ranks))));
              } else {
                unsafe.put(variant.toString(), Promela.of(variant.inPlace(2)));
              }
            });
    Spin.assertSafe(safe);
    Spin.assertUnsafe(unsafe, ".*");
  }
}
