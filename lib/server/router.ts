/** The handlers that a route file exports, and the router that finds the route of a request. */
import type { ConsoleSession } from "../access/console_session.ts";
import type { Caller } from "../access/permissions.ts";
import type { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { ScanPlan } from "../json/mod.ts";
import type { RequestRecord } from "../observe/request_record.ts";
import type { PhaseTimers } from "../phase_timers.ts";
import type { AnswerKeeper } from "../protocols/codec.ts";
import type { JsonBody } from "./body.ts";
import type { ConnectionHost } from "./connection_host.ts";
import type { Drain } from "./drain.ts";

/** Name and value of a header. */
export type AnswerHeader = readonly [name: string, value: string];

/** The second argument of a route handler. */
export interface RouteContext {
  gateway: Gateway;
  /** The gateway's id of the request, `[A-Za-z0-9]+`. */
  requestId: string;
  /** Facts about the request for the log and the metrics. */
  record: RequestRecord;
  /** Path parameters by the name in the file's path, decoded once. */
  params: Readonly<Record<string, string>>;
  /** The authenticated caller; absent only on public routes. */
  caller: Caller | undefined;
  /** The session of a signed-in operator; absent outside the console. */
  session: ConsoleSession | undefined;
  /**
   * Headers that are added to the response or the error in the end. They replace headers of the same name, except
   * `vary`. Names are in lower case; the last header of a name is used.
   */
  readonly answerHeaders: AnswerHeader[];
  /** Returns the client's address; undefined if it is not known. */
  address(): string | undefined;
  /** Timers for the request. The handler must clear its timers before the request ends. */
  readonly timers: PhaseTimers;
  /**
   * Reads the request body as a JSON object, within the limits of size, time and nesting. Further calls return the same
   * body.
   * @param scan members that need not be parsed
   * @throws {GatewayError} `invalid`, `too_large`, `too_slow`, `unsupported_media_type` or `limited`
   */
  readJson(scan?: ScanPlan): Promise<JsonBody>;
  /**
   * Reads the fields of a form that a browser sends, within the limits of size and time. May be called once.
   * @throws {GatewayError} `too_large`, `too_slow`, `unsupported_media_type` or `limited`
   */
  readForm(): Promise<URLSearchParams>;
  /**
   * Refuses a wrong key that the handler has read by itself, and counts it for the client's address.
   * @throws {GatewayError} the error, or `limited` if the address has sent too many wrong keys
   */
  refuseCredential(error: GatewayError): never;
  /**
   * Reserves memory for a body that the handler reads by itself, until the handler has returned its response and the
   * promise of `keepBody` has resolved.
   * @param bytes memory to reserve, in bytes
   * @param received how many of the bytes the client has sent; absent: all
   * @throws {GatewayError} `limited` if all bodies, or those of the caller's key, take too much memory
   */
  reserve(bytes: number, received?: number): void;
  /**
   * Reserves memory for a large answer before it is made or read, until the handler has returned its response. A larger
   * answer than a key may have in memory counts as the largest.
   * @throws {GatewayError} `limited` if all bodies and large answers, or those of the caller's key, take too much memory
   */
  reserveAnswer(bytes: number): void;
  /** Tells the size of an answer in memory whose response does not have it. Large answers count until they were sent. */
  holdAnswer(bytes: number): void;
  /** Shutdown state of the process, for answers that end only with it. */
  readonly drain: Pick<Drain, "phase" | "connect" | "connections">;
  /** Services for an open connection; absent unless the request opens a WebSocket. */
  connection?: ConnectionHost;
  /** Keeps the answer for later requests that refer to it; absent if none can. */
  keeper?: AnswerKeeper;
  /** Checks an operator's credentials again, because the session may end or the key may change during a long answer. */
  isStillOperator?(): Promise<boolean>;
  /** Keeps the size of the body reserved until a promise resolves, also after the answer has begun. */
  keepBody?(end: Promise<unknown>): void;
  /** Reports that a body which the handler reads by itself has arrived completely. */
  arrived?(): void;
}

/** A route's handler for one method. */
export interface Handler {
  (request: Request, context: RouteContext): Response | Promise<Response>;
  /** Imports the handler's module; absent if it is already imported. */
  load?: () => Promise<unknown>;
}

/** Creates a handler whose module is imported at its first request. */
export function lazyHandler(load: () => Promise<Handler>): Handler {
  // `import()` takes microseconds even for a module that is already imported.
  let loaded: Handler | undefined;
  const handler: Handler = async (request, context) => (loaded ??= await load())(request, context);
  handler.load = load;
  return handler;
}

/** Creates a route whose file is imported at the first request. @param load imports the file, which exports the methods */
export function lazyRoute<Name extends Method>(
  path: string,
  methods: readonly Name[],
  load: () => Promise<Readonly<Record<Name, Handler>>>,
): Route {
  const handlers = methods.map((method) => [method, lazyHandler(async () => (await load())[method])]);
  return { path, handlers: Object.fromEntries(handlers) };
}

/**
 * Imports the modules of all handlers, one after another. The last come first: if the console were the first, it would
 * also import what the others share, and block the event loop twice as long.
 */
export async function loadHandlers(routes: readonly Route[]): Promise<void> {
  for (const { handlers } of routes.toReversed()) {
    for (const handler of Object.values(handlers)) await handler.load?.();
  }
}

/** The methods that a route can have. The handler of `GET` also answers `HEAD`. */
export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** A method that a route can have. */
export type Method = typeof METHODS[number];

/** One route file: its path and its handlers. */
export interface Route {
  /** Path with parameters in brackets, such as `/v1/models/[provider]`. */
  readonly path: string;
  readonly handlers: Readonly<Partial<Record<Method, Handler>>>;
}

/** A route and the values of its parameters. */
export interface Match<Routed> {
  readonly route: Routed;
  readonly params: Readonly<Record<string, string>>;
}

/** Finds the route of a path, given as decoded segments; returns undefined if there is none. */
export type Router<Routed> = (segments: readonly string[]) => Match<Routed> | undefined;

/** A segment of a route's path, and the name of the parameter that it stands for; undefined for a static segment. */
interface PathPart {
  text: string;
  name: string | undefined;
}

/** Stands for a parameter in a pattern. It comes after all letters, so that static segments take precedence. */
const ANY = "~";

/**
 * Creates a router. Static segments take precedence over parameters, independently of the order of the list. A
 * parameter matches exactly one segment, which must not be empty.
 * @throws {RangeError} if two routes match the same paths
 */
export function createRouter<Routed extends Pick<Route, "path">>(routes: readonly Routed[]): Router<Routed> {
  const patterns = new Map<string, { route: Routed; parts: readonly PathPart[] }>();
  for (const route of routes) {
    const parts = route.path.split("/").slice(1).map((text) => ({ text, name: /^\[([a-z_]+)\]$/.exec(text)?.[1] }));
    const pattern = parts.map(({ text, name }) => name === undefined ? text : ANY).join("/");
    const other = patterns.get(pattern)?.route;
    if (other !== undefined) {
      throw new RangeError(`Cannot add route "${route.path}": it matches the same paths as "${other.path}"`);
    }
    patterns.set(pattern, { route, parts });
  }
  const ordered = [...patterns].sort(([one], [other]) => one < other ? -1 : 1).map(([, pattern]) => pattern);
  return (segments) => {
    for (const { route, parts } of ordered) {
      const params: Record<string, string> = {};
      if (parts.length === segments.length && matches(parts, segments, params)) return { route, params };
    }
    return undefined;
  };
}

/** Returns whether segments match the parts of a path, and adds the values of parameters to `params`. */
function matches(parts: readonly PathPart[], segments: readonly string[], params: Record<string, string>): boolean {
  return parts.every(({ text, name }, index) => {
    const segment = segments[index] ?? "";
    if (name === undefined) return segment === text;
    params[name] = segment;
    return segment !== "";
  });
}

/** Returns the methods that a route answers, sorted, for the header `Allow`. `HEAD` is among them if `GET` is. */
export function allowedMethods(route: Route): string[] {
  const methods: string[] = METHODS.filter((method) => route.handlers[method] !== undefined);
  if (methods.includes("GET")) methods.push("HEAD");
  return methods.sort();
}
