package dev.taskyard;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.time.OffsetDateTime;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import org.tomlj.Toml;
import org.tomlj.TomlParseResult;

/**
 * The server and key to use: from arguments, then the environment, then files.
 *
 * @param source where the address came from
 * @param keyFile the context file that named the key; empty if it came from elsewhere
 */
public record TaskyardContext(
    String address,
    String scheduler,
    String key,
    String adminKey,
    String tenant,
    String tlsCa,
    String source,
    String keyFile) {

  private static final Map<String, String> VARIABLES =
      Map.of(
          "address", "TASKYARD_ADDRESS",
          "scheduler", "TASKYARD_SCHEDULER",
          "key", "TASKYARD_KEY",
          "admin_key", "TASKYARD_ADMIN_KEY",
          "tenant", "TASKYARD_TENANT",
          "tls_ca", "TASKYARD_TLS_CA");

  private record Layer(String source, Map<String, String> values, boolean isFile, ContextException problem) {}

  /**
   * The effective context. Each layer fills in values that earlier layers did not set. A layer with a different address
   * is skipped: its key belongs to another server. For the same reason a key of the environment is not sent to an
   * address that only a file names.
   *
   * @throws ContextException if no server is configured or a file is damaged
   */
  static TaskyardContext find(Map<String, String> given, Map<String, String> environment, Path start) {
    String address = "";
    String source = "";
    String keyFile = "";
    Map<String, String> found = new HashMap<>();
    for (Layer layer : layers(given, environment, start)) {
      if (layer.problem() != null) {
        if (!address.isEmpty()) {
          continue;
        }
        throw layer.problem();
      }
      String other = layer.values().getOrDefault("address", "");
      if (!address.isEmpty() && !other.isEmpty() && !other.equals(address)) {
        continue;
      }
      if (address.isEmpty() && !other.isEmpty()) {
        address = other;
        source = layer.source();
        if (layer.isFile()) {
          refuseBareKeys(given, environment, source);
        }
      }
      Map<String, String> values = new HashMap<>(layer.values());
      if (found.containsKey("key")) {
        // A key of an earlier layer is used for administrative calls too.
        values.remove("admin_key");
      } else if (values.containsKey("key") && layer.isFile()) {
        keyFile = layer.source();
      }
      values.forEach(found::putIfAbsent);
    }
    if (address.isEmpty()) {
      throw new ContextException.NoContext(
          "no server is configured: start one here with `make up` or `taskyard up`,"
              + " or set TASKYARD_ADDRESS and TASKYARD_KEY");
    }
    return new TaskyardContext(
        address,
        found.getOrDefault("scheduler", ""),
        found.getOrDefault("key", ""),
        found.getOrDefault("admin_key", ""),
        found.getOrDefault("tenant", "default"),
        found.getOrDefault("tls_ca", ""),
        source,
        keyFile);
  }

  private static List<Layer> layers(Map<String, String> given, Map<String, String> environment, Path start) {
    List<Layer> layers = new ArrayList<>();
    layers.add(new Layer("argument", given, false, null));
    Map<String, String> variables = new HashMap<>();
    VARIABLES.forEach((name, variable) -> variables.put(name, environment.getOrDefault(variable, "")));
    variables.values().removeIf(String::isEmpty);
    layers.add(new Layer("TASKYARD_ADDRESS", variables, false, null));
    boolean named = given.containsKey("address") || variables.containsKey("address");
    for (Path file : files(environment, start)) {
      if (Files.isRegularFile(file)) {
        layers.add(fileLayer(file));
        // A later file is read only if the earlier ones are usable.
        if (!named && layers.get(layers.size() - 1).problem() != null) {
          break;
        }
      }
    }
    return layers;
  }

  private static List<Path> files(Map<String, String> environment, Path start) {
    List<Path> files = new ArrayList<>();
    for (Path folder = start.toAbsolutePath(); folder != null; folder = folder.getParent()) {
      Path nearby = folder.resolve(".taskyard").resolve("context.toml");
      if (Files.isRegularFile(nearby)) {
        files.add(nearby);
        break;
      }
    }
    Path home = Path.of(orElse(environment.get("HOME"), System.getProperty("user.home")));
    files.add(folder(environment, "XDG_CONFIG_HOME", home.resolve(".config")).resolve("taskyard/config.toml"));
    // The default data directory of `taskyard up`.
    files.add(folder(environment, "XDG_DATA_HOME", home.resolve(".local/share")).resolve("taskyard/context.toml"));
    return files;
  }

  private static Path folder(Map<String, String> environment, String variable, Path otherwise) {
    return Path.of(orElse(environment.get(variable), otherwise.toString()));
  }

  private static String orElse(String value, String otherwise) {
    return value == null || value.isEmpty() ? otherwise : value;
  }

  private static Layer fileLayer(Path file) {
    String distrust = distrust(file);
    if (!distrust.isEmpty()) {
      return new Layer(file.toString(), Map.of(), true, new ContextException(distrust));
    }
    Map<String, String> values = read(file);
    String expires = values.getOrDefault("expire_time", "");
    if (!expires.isEmpty() && isPast(file, expires)) {
      String message = file + " expired at " + expires + "; get a new one";
      return new Layer(file.toString(), Map.of(), true, new ContextException.Expired(message));
    }
    return new Layer(file.toString(), values, true, null);
  }

  private static boolean isPast(Path file, String moment) {
    try {
      return !OffsetDateTime.parse(moment).isAfter(OffsetDateTime.now());
    } catch (DateTimeParseException error) {
      throw new ContextException(
          file + ": expire_time = '" + moment + "' is not of the form 2030-01-31T12:00:00Z");
    }
  }

  private static void refuseBareKeys(Map<String, String> given, Map<String, String> environment, String file) {
    for (String name : List.of("key", "admin_key")) {
      String variable = VARIABLES.get(name);
      if (!environment.getOrDefault(variable, "").isEmpty() && !given.containsKey(name)) {
        throw new ContextException(
            variable + " is set, but only " + file + " names a server, and it may be for another;"
                + " set TASKYARD_ADDRESS as well");
      }
    }
  }

  /** Why a file may hold what others want; empty if only its owner can have written it. */
  private static String distrust(Path file) {
    try {
      int owner = (int) Files.getAttribute(file, "unix:uid");
      int self = (int) Files.getAttribute(Path.of("/proc/self"), "unix:uid", LinkOption.NOFOLLOW_LINKS);
      if (owner != self && owner != 0) {
        return file + " belongs to user " + owner + ", who could send your keys elsewhere; remove it";
      }
      if (((int) Files.getAttribute(file, "unix:mode") & 0022) != 0) {
        return file + " can be written by others, who could send your keys elsewhere: chmod go-w " + file;
      }
      return "";
    } catch (IOException error) {
      return file + " cannot be read (" + error + "); correct or remove it";
    }
  }

  private static Map<String, String> read(Path file) {
    TreeSet<String> allowed = new TreeSet<>(VARIABLES.keySet());
    allowed.addAll(List.of("gateway", "expire_time"));
    TomlParseResult parsed;
    try {
      parsed = Toml.parse(file);
    } catch (IOException error) {
      throw new ContextException(file + " cannot be read (" + error + "); correct or remove it");
    }
    if (parsed.hasErrors()) {
      throw new ContextException(file + " cannot be read (" + parsed.errors().get(0) + "); correct or remove it");
    }
    Map<String, String> values = new HashMap<>();
    for (String name : parsed.keySet()) {
      Object value = parsed.get(List.of(name));
      if (!allowed.contains(name)) {
        throw new ContextException(
            file + ": unknown setting '" + name + "'; use " + String.join(", ", allowed));
      }
      if (!(value instanceof String text)) {
        throw new ContextException(file + ": " + name + " = " + value + " must be a text in quotes");
      }
      if (!text.isEmpty()) {
        values.put(name, text);
      }
    }
    return values;
  }
}
