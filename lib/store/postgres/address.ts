/** Parses addresses of Postgres databases, as libpq does, into options of the driver. */
import type postgres from "postgres";
import { messageOf } from "../../errors.ts";
import type { Secret } from "../../secret.ts";
import { StoreError } from "../store.ts";

/** A parsed address. */
export interface PostgresAddress {
  /** The address without its parameters. It may contain a password. */
  server: string;
  options: AddressOptions;
  /** Session settings for the server, such as `application_name`. */
  connection: Record<string, string>;
}

type AddressOptions = Pick<
  postgres.Options<Record<string, postgres.PostgresType>>,
  | "host"
  | "port"
  | "database"
  | "username"
  | "password"
  | "ssl"
  | "prepare"
  | "connect_timeout"
  | "target_session_attrs"
>;

/** Parameters that only other clients know. The server would reject them as settings. */
const IGNORED_PARAMETERS = [
  ...["channel_binding", "gssencmode", "krbsrvname", "hostaddr", "passfile", "service", "sslcompression", "sslsni"],
  ...["sslcrl", "ssl_min_protocol_version", "ssl_max_protocol_version", "requirepeer", "load_balance_hosts"],
  ...["keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"],
  ...["fallback_application_name", "connection_limit", "pool_timeout", "socket_timeout", "statement_cache_size"],
];

/** Valid values of `target_session_attrs`. */
const SESSION_TYPES = ["read-write", "read-only", "primary", "standby", "prefer-standby"] as const;

/** Parses an address, and reads the certificate files that it names. @throws {StoreError} if it is invalid */
export function readPostgresAddress(url: Secret): PostgresAddress {
  const [server = "", query = ""] = splitOnce(url.reveal(), "?");
  const parameters = new Map(new URLSearchParams(query));
  for (const name of IGNORED_PARAMETERS) parameters.delete(name);
  /** Removes a parameter and returns its value; undefined if it is empty or missing. */
  function take(name: string): string | undefined {
    const value = parameters.get(name);
    parameters.delete(name);
    return value === "" ? undefined : value;
  }

  const [host, port, database] = [take("host"), take("port"), take("dbname")];
  const [username, password] = [take("user"), take("password")];
  const [timeout, session] = [Number(take("connect_timeout") ?? 0), take("target_session_attrs")];
  const [prepare, isPooled, schema] = [take("prepare"), take("pgbouncer"), take("schema")];
  const hosts = host ?? hostsOf(server);
  const ssl = readTls(
    { mode: take("sslmode"), root: take("sslrootcert"), cert: take("sslcert"), key: take("sslkey") },
    hosts,
  );
  return {
    server,
    options: {
      ...(host !== undefined && { host }),
      ...(port !== undefined && { port: Number(port) }),
      ...(database !== undefined && { database }),
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...(timeout > 0 && { connect_timeout: timeout }),
      ...(isSession(session) && { target_session_attrs: session }),
      ...((prepare === "false" || isPooled === "true") && { prepare: false }),
      ssl,
    },
    connection: { ...(schema !== undefined && { search_path: schema }), ...Object.fromEntries(parameters) },
  };
}

/** Parameters of an address about TLS; the last three are paths of files. */
interface TlsParameters {
  mode: string | undefined;
  root: string | undefined;
  cert: string | undefined;
  key: string | undefined;
}

function defaultMode(root: string | undefined, hosts: string): string {
  if (root === undefined) return isLocal(hosts) ? "disable" : "prefer";
  return root === "system" ? "verify-full" : "verify-ca";
}

/**
 * Returns the driver's option for TLS. Without `sslmode`, TLS is used for remote servers that support it, as libpq
 * does.
 * @throws {StoreError} for an unknown mode, and if a file cannot be read
 */
function readTls({ mode, root, cert, key }: TlsParameters, hosts: string): NonNullable<AddressOptions["ssl"]> {
  const files = {
    ...(root !== undefined && root !== "system" && { ca: readFile(root) }),
    ...(cert !== undefined && { cert: readFile(cert) }),
    ...(key !== undefined && { key: readFile(key) }),
  };
  switch (mode ?? defaultMode(root, hosts)) {
    case "disable":
      return false;
    case "allow":
    case "prefer":
      return "prefer";
    case "require":
      if (root === undefined) return { ...files, rejectUnauthorized: false };
      return { ...files, checkServerIdentity: () => undefined };
    case "verify-ca":
      return { ...files, checkServerIdentity: () => undefined };
    case "verify-full":
      // For a numeric address, the driver sets no server name by itself.
      return { ...files, ...(isNumeric(hosts) && { host: hosts }) };
    default:
      throw new StoreError(`Cannot open the store: sslmode "${mode}" is not known`);
  }
}

function readFile(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch (cause) {
    const why = messageOf(cause);
    throw new StoreError(`Cannot open the store: cannot read "${path}": ${why}`, { cause });
  }
}

/** Returns the hosts of an address, without ports: one, or several that are separated by commas. */
function hostsOf(server: string): string {
  const authority = server.slice(server.indexOf("://") + 3).split("/")[0] ?? "";
  const hosts = authority.slice(authority.lastIndexOf("@") + 1);
  return hosts.split(",").map((host) => host.replace(/:\d*$/, "")).join(",");
}

function isLocal(hosts: string): boolean {
  return /^(?:localhost|127\.\d+\.\d+\.\d+|\[::1\]|)$/.test(hosts) || hosts.startsWith("/") || /^%2f/i.test(hosts);
}

function isNumeric(hosts: string): boolean {
  return /^(?:\d+\.\d+\.\d+\.\d+|\[[\da-f:.]+\])$/i.test(hosts);
}

function isSession(word: string | undefined): word is typeof SESSION_TYPES[number] {
  return SESSION_TYPES.some((session) => session === word);
}

function splitOnce(text: string, mark: string): string[] {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + mark.length)];
}
