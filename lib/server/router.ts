/** The handlers that a route file exports, and the router that finds the route of a request. */
import type { ConsoleSession } from "../access/console_session.ts";
import type { Caller } from "../access/permissions.ts";
import type { ScanPlan } from "../json/mod.ts";
import type { PhaseTimers } from "../phase_timers.ts";
import type { AnswerKeeper } from "../protocols/codec.ts";
import type { RequestBody } from "./body.ts";
import type { JsonBody } from "./parse_body.ts";
import type { ClientTracker, GuardedRequest } from "./client_tracker.ts";
import type { ConnectionHost } from "./connection_host.ts";
import type { Drain } from "./drain.ts";

/** Name and value of a header. */
export type AnswerHeader = readonly [name: string, value: string];

/** The second argument of a route handler. */
export interface RouteContext extends Pick<GuardedRequest, "gateway" | "requestId" | "record" | "head" | "info"> {
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
  readonly clients: ClientTracker;
  /** Timers for the request. The handler must clear its timers before the request ends. */
  readonly timers: PhaseTimers;
  /** The request's body as it was sent. */
  readonly body: Omit<RequestBody, "readJson" | "keepAnswer" | "take" | "release">;
  /**
   * Reads the body as `RequestBody.readJson`. A protocol may add to it: Gemini adds the members in the URL, and responses
   * adds the stored conversation.
   */
  readJson(scan?: ScanPlan): Promise<JsonBody>;
  /** Shutdown state of the process, for answers that end only with it. */
  readonly drain: Pick<Drain, "phase" | "connect" | "connections">;
  /** Services for an open connection; absent unless the request opens a WebSocket. */
  connection?: ConnectionHost;
  /** Keeps the answer for later requests that refer to it; absent if none can. */
  keeper?: AnswerKeeper;
  /** Checks an operator's credentials again, because the session may end or the key may change during a long answer. */
  isStillOperator?(): Promise<boolean>;
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
 * Yields functions that import the modules of all handlers. The last come first: if the console were the first, it
 * would also import what the others share, and block the event loop twice as long.
 */
export function* handlerImports(routes: readonly Route[]): Generator<() => Promise<unknown>> {
  for (const { handlers } of routes.toReversed()) {
    for (const { load } of Object.values(handlers)) if (load !== undefined) yield load;
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

/** A segment of a route's path, and the name of the parameter that it stands for; undefined for a static segment. */
interface PathPart {
  text: string;
  name: string | undefined;
}

/** Stands for a parameter in a pattern. It comes after all letters, so that static segments take precedence. */
const ANY = "~";

/**
 * Separates the segments of a path. No segment contains it. A slash would not do: a segment may contain a decoded one.
 */
const SEPARATOR = "\0";

/**
 * Creates a router: a function that finds the route of a path, given as decoded segments. Static segments take
 * precedence over parameters, independently of the order of the list. A parameter matches exactly one segment, which
 * must not be empty.
 * @throws {RangeError} if two routes match the same paths
 */
export function createRouter<Routed extends Pick<Route, "path">>(
  routes: readonly Routed[],
): (segments: readonly string[]) => Match<Routed> | undefined {
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
  const fixed = new Map<string, Routed>();
  const varying: { route: Routed; parts: readonly PathPart[] }[] = [];
  for (const [, pattern] of [...patterns].sort(([one], [other]) => one < other ? -1 : 1)) {
    if (pattern.parts.some(({ name }) => name !== undefined)) varying.push(pattern);
    else fixed.set(pattern.parts.map(({ text }) => text).join(SEPARATOR), pattern.route);
  }
  return (segments) => {
    const route = fixed.get(segments.join(SEPARATOR));
    if (route !== undefined) return { route, params: {} };
    for (const { route, parts } of varying) {
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
