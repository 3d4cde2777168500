package dev.symplan.cli.common;

import picocli.CommandLine.IVersionProvider;

/** The version of Symplan, as the build writes it into the archive. */
public final class Version implements IVersionProvider {

  /** {@return the version, or that it is unknown because the classes are not in an archive} */
  public static String text() {
    var version = Version.class.getPackage().getImplementationVersion();
    return version == null ? "unpackaged" : version;
  }

  /** {@return the text of {@code --version}} */
  @Override
  public String[] getVersion() {
    return new String[] {"symplan " + text()};
  }
}
