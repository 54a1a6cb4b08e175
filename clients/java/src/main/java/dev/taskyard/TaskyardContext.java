package dev.taskyard;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.OffsetDateTime;
import java.time.format.DateTimeParseException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The server and key to use: from arguments, then the environment, then files.
 *
 * @param tenant empty if it is that of the key
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

  static final Map<String, String> VARIABLES =
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
   * is skipped: its key belongs to another server; one of the replicas that a layer lists is not different. For the same
   * reason a key of the environment is not sent to an address that only a file names.
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
      if (!address.isEmpty() && !other.isEmpty() && !replicas(other).containsAll(replicas(address))) {
        continue;
      }
      if (address.isEmpty() && !other.isEmpty()) {
        address = other;
        source = layer.source();
        if (layer.isFile()) {
          refuseBareKeys(given, environment, source);
        }
      }
      if (!found.containsKey("key") && layer.values().containsKey("key") && layer.isFile()) {
        keyFile = layer.source();
      }
      merge(found, layer.values());
    }
    if (address.isEmpty()) {
      throw new ContextException.NoContext(
          "no server is configured: start one here with `make up` or `taskyard up`,"
              + " or set TASKYARD_ADDRESS and TASKYARD_KEY");
    }
    for (String name : List.of("key", "admin_key")) {
      if (found.getOrDefault(name, "").chars().anyMatch(one -> one <= ' ' || one > '~')) {
        throw new ContextException(
            "the " + name.replace('_', ' ') + " contains a line break, a blank or another character that no key has;"
                + " correct " + VARIABLES.get(name) + " or the file that names it");
      }
    }
    return new TaskyardContext(
        address,
        found.getOrDefault("scheduler", ""),
        found.getOrDefault("key", ""),
        found.getOrDefault("admin_key", ""),
        found.getOrDefault("tenant", ""),
        found.getOrDefault("tls_ca", ""),
        source,
        keyFile);
  }

  private static List<String> replicas(String address) {
    return Arrays.stream(address.split(",")).map(String::strip).toList();
  }

  /**
   * Completes the values of earlier layers by those of the next one. The tenant and the administrator's key of a layer
   * go with its key. A tenant that an earlier layer names, and that is not the one of the key, is only accessible to the
   * administrator.
   */
  private static void merge(Map<String, String> found, Map<String, String> next) {
    Map<String, String> values = new HashMap<>(next);
    if (found.containsKey("key")) {
      values.keySet().removeAll(List.of("admin_key", "tenant"));
    }
    boolean foreign =
        values.containsKey("key")
            && found.containsKey("tenant")
            && !found.get("tenant").equals(values.get("tenant"));
    if (foreign && values.containsKey("admin_key")) {
      values.put("key", values.get("admin_key"));
    }
    values.forEach(found::putIfAbsent);
  }

  private static List<Layer> layers(Map<String, String> given, Map<String, String> environment, Path start) {
    List<Layer> layers = new ArrayList<>();
    layers.add(new Layer("argument", given, false, null));
    Map<String, String> variables = new HashMap<>();
    VARIABLES.forEach((name, variable) -> variables.put(name, environment.getOrDefault(variable, "")));
    variables.values().removeIf(String::isEmpty);
    layers.add(new Layer("TASKYARD_ADDRESS", variables, false, null));
    String chosen = environment.getOrDefault("TASKYARD_CONTEXT", "");
    if (!chosen.isEmpty()) {
      layers.add(namedLayer(ContextFile.config(environment), chosen));
      return layers;
    }
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
    files.add(ContextFile.config(environment));
    // The default data directory of `taskyard up`.
    files.add(ContextFile.folder(environment, "XDG_DATA_HOME", ".local/share").resolve("taskyard/context.toml"));
    return files;
  }

  private static Layer fileLayer(Path file) {
    String distrust = ContextFile.distrust(file);
    if (!distrust.isEmpty()) {
      return new Layer(file.toString(), Map.of(), true, new ContextException(distrust));
    }
    return unexpired(file.toString(), ContextFile.read(file).chosen(), true);
  }

  /** A context of the configuration, which the user chose. */
  private static Layer namedLayer(Path file, String name) {
    boolean exists = Files.isRegularFile(file);
    String problem = exists ? ContextFile.distrust(file) : "";
    Map<String, Map<String, String>> contexts =
        exists && problem.isEmpty() ? ContextFile.read(file).contexts() : Map.of();
    if (contexts.containsKey(name)) {
      return unexpired("context " + name + " of " + file, contexts.get(name), false);
    }
    String known = contexts.isEmpty() ? "none" : String.join(", ", contexts.keySet());
    if (problem.isEmpty()) {
      problem =
          file + " has no context '" + name + "', only: " + known
              + "; add it with `taskyard login --name " + name + "`";
    }
    return new Layer(file.toString(), Map.of(), false, new ContextException(problem));
  }

  private static Layer unexpired(String source, Map<String, String> values, boolean isFile) {
    String expires = values.getOrDefault("expire_time", "");
    if (!expires.isEmpty() && isPast(source, expires)) {
      String message = source + " expired at " + expires + "; get a new one";
      return new Layer(source, Map.of(), isFile, new ContextException.Expired(message));
    }
    return new Layer(source, values, isFile, null);
  }

  private static boolean isPast(String source, String moment) {
    try {
      return !OffsetDateTime.parse(moment).isAfter(OffsetDateTime.now());
    } catch (DateTimeParseException error) {
      throw new ContextException(
          source + ": expire_time = '" + moment + "' is not of the form 2030-01-31T12:00:00Z");
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
}
