package dev.symplan;

import static com.tngtech.archunit.lang.syntax.ArchRuleDefinition.noClasses;
import static com.tngtech.archunit.library.dependencies.SlicesRuleDefinition.slices;

import com.tngtech.archunit.core.importer.ImportOption;
import com.tngtech.archunit.core.importer.Location;
import com.tngtech.archunit.junit.AnalyzeClasses;
import com.tngtech.archunit.junit.ArchTest;
import com.tngtech.archunit.lang.ArchRule;

/** Rules that the modules of the build, each of which sees only those below it, leave open. */
@AnalyzeClasses(packages = "dev.symplan", importOptions = ArchitectureTest.MainClasses.class)
class ArchitectureTest {

  /** Tests may use what they like; those that other modules use are in jars. */
  static final class MainClasses implements ImportOption {
    @Override
    public boolean includes(Location location) {
      return !location.contains("/test-classes/") && !location.contains("-tests.jar");
    }
  }

  @ArchTest
  static final ArchRule THE_PACKER_KNOWS_NO_GRAPHS =
      noClasses()
          .that()
          .resideInAPackage("dev.symplan.planner.pack..")
          .should()
          .dependOnClassesThat()
          .resideInAnyPackage("dev.symplan.ir", "dev.symplan.ir.graph..", "dev.symplan.ir.op..");

  @ArchTest
  static final ArchRule PACKAGES_HAVE_NO_CYCLES =
      slices().matching("dev.symplan.(**)").should().beFreeOfCycles();

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
