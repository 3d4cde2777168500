package dev.symplan;

import static com.tngtech.archunit.base.DescribedPredicate.describe;
import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.Architectures.layeredArchitecture;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.ImportOption.DoNotIncludeTests;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

@AnalyzeClasses(packages = "dev.symplan", importOptions = DoNotIncludeTests.class)
class ArchitectureTest {

  @ArchTest
  static final ArchRule LAYERS =
      layeredArchitecture()
          .consideringOnlyDependenciesInLayers()
          .layer("ir")
          .definedBy("dev.symplan.ir..")
          .layer("planner")
          .definedBy("dev.symplan.planner..")
          .layer("codegen")
          .definedBy("dev.symplan.codegen..")
          .layer("runtime")
          .definedBy("dev.symplan.runtime..")
          .layer("cli")
          .definedBy("dev.symplan.cli..")
          .whereLayer("cli")
          .mayNotBeAccessedByAnyLayer()
          .whereLayer("runtime")
          .mayOnlyBeAccessedByLayers("cli")
          .whereLayer("codegen")
          .mayOnlyBeAccessedByLayers("runtime")
          .whereLayer("planner")
          .mayOnlyBeAccessedByLayers("codegen", "runtime", "cli");

  @ArchTest
  static final ArchRule THE_VERIFIER_SHARES_NOTHING_WITH_THE_PASSES =
      noClasses()
          .that()
          .resideInAPackage("dev.symplan.planner.verify..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "dev.symplan.planner.pass..",
              "dev.symplan.planner.pack..",
              "dev.symplan.planner.cost..");

  @ArchTest
  static final ArchRule THE_PACKER_KNOWS_NO_GRAPHS =
      noClasses()
          .that()
          .resideInAPackage("dev.symplan.planner.pack..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "dev.symplan.planner",
              "dev.symplan.planner.machine..",
              "dev.symplan.planner.pass..",
              "dev.symplan.planner.plan..");

  @ArchTest
  static final ArchRule PACKAGES_HAVE_NO_CYCLES =
      slices()
          .matching("dev.symplan.(**)")
          .that(
              describe(
                  "of ir, planner and codegen",
                  slice -> slice.getNamePart(1).matches("(ir|planner|codegen)(\\..*)?")))
          .should()
          .beFreeOfCycles();

  @ArchTest
  static final ArchRule THE_CLI_USES_THE_PUBLIC_SURFACE =
      noClasses()
          .that()
          .resideInAPackage("dev.symplan.cli..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage(
              "dev.symplan.codegen..",
              "dev.symplan.ir.fx..",
              "dev.symplan.ir.text..",
              "dev.symplan.planner.cost..",
              "dev.symplan.planner.pack..",
              "dev.symplan.planner.pass..",
              "dev.symplan.planner.verify..",
              "dev.symplan.runtime.host..");

  @ArchTest
  static final ArchRule DEVICES_ARE_THE_RUNTIMES =
      noClasses()
          .that()
          .resideOutsideOfPackage("dev.symplan.runtime..")
          .should()
          .dependOnClassesThat()
          .resideInAPackage("org.bytedeco..");
}
