/** The form of a route file, and the router that finds the route of a request. */
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
   * Headers of every answer to the request: written once, at its end, over those of a response or an error.
   * Names in lower case; the last of one name counts.
   */
  readonly answerHeaders: AnswerHeader[];
  /** The client's address; absent where it is not known. */
  address(): string | undefined;
  /** Timers of the request, to be cleared when it has been answered. */
  readonly timers: PhaseTimers;
  /**
   * The request body, read within the limits of size, time and shape. May be called once.
   * @param scan members that need not be parsed
   * @throws {GatewayError} `invalid`, `too_large`, `too_slow`, `unsupported_media_type` or `limited`
   */
  readJson(scan?: ScanPlan): Promise<JsonBody>;
  /**
   * The fields of a form that a browser sends, read within the limits of size and time. May be called once.
   * @throws {GatewayError} `too_large`, `too_slow`, `unsupported_media_type` or `limited`
   */
  readForm(): Promise<URLSearchParams>;
  /**
   * Refuses a wrong key that the handler has read by itself, and counts it for the client's address.
   * @throws {GatewayError} the error, or `limited` if the address has sent too many wrong keys
   */
  refuseCredential(error: GatewayError): never;
  /**
   * Counts bytes of a body that the handler reads by itself, before it keeps them, until there is an answer.
   * @param received how many of them the client has sent; absent: all
   * @throws {GatewayError} `limited` where all bodies together take too much memory
   */
  reserve(bytes: number, received?: number): void;
  /** Shutdown state of the process, for answers that end only with it. */
  readonly drain: Pick<Drain, "phase" | "connect" | "connections">;
  /** The server, where the request opens a WebSocket. */
  connection?: ConnectionHost;
  /** Keeps the answer for requests that refer to it; absent: nothing can. */
  keeper?: AnswerKeeper;
  /** Checks an operator's credentials again: their session may end, or their key change, while an answer goes on. */
  isStillOperator?(): Promise<boolean>;
  /** Says that a body which the handler reads by itself is all there. */
  arrived?(): void;
}

/** A route's handler for one method. */
export interface Handler {
  (request: Request, context: RouteContext): Response | Promise<Response>;
  /** Imports its module; absent: that is done. */
  load?: () => Promise<unknown>;
}

/** A handler whose module is loaded by its first request. */
export function lazyHandler(load: () => Promise<Handler>): Handler {
  const handler: Handler = async (request, context) => (await load())(request, context);
  handler.load = load;
  return handler;
}

/** Imports the modules of all handlers, one after the other. */
export async function loadHandlers(routes: readonly Route[]): Promise<void> {
  for (const { handlers } of routes) {
    for (const handler of Object.values(handlers)) await handler.load?.();
  }
}

/** The methods a route file may export. `HEAD` is answered by `GET`. */
export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** A method a route file may export. */
export type Method = typeof METHODS[number];

/** One route file: its path in segments (`[name]` is a parameter) and its handlers. */
export interface Route {
  /** Such as `/v1/models/[provider]`. */
  readonly path: string;
  readonly handlers: Readonly<Partial<Record<Method, Handler>>>;
}

/** A route and the values of its parameters. */
export interface Match {
  route: Route;
  params: Record<string, string>;
}

/** Finds the route of a path, given as decoded segments. */
export type Router = (segments: readonly string[]) => Match | undefined;

/** One segment's place in the tree of routes. */
interface Node {
  statics: Map<string, Node>;
  parameter: Node | undefined;
  /** The route that ends here, with the names of its parameters in order. */
  leaf: { route: Route; names: string[] } | undefined;
}

/**
 * Builds the tree of routes once. A static segment goes before a parameter, whatever the order of the list; a parameter
 * takes exactly one segment that is not empty.
 * @throws {RangeError} where two routes have one path
 */
export function createRouter(routes: readonly Route[]): Router {
  const root = createNode();
  for (const route of routes) addRoute(root, route);
  return (segments) => {
    const values: string[] = [];
    const leaf = findLeaf(root, segments, values);
    if (leaf === undefined) return undefined;
    const params: Record<string, string> = {};
    leaf.names.forEach((name, index) => params[name] = values[index] ?? "");
    return { route: leaf.route, params };
  };
}

/** The methods a route answers, sorted, `HEAD` beside `GET`: the value of `Allow`. */
export function allowedMethods(route: Route): string[] {
  const methods: string[] = METHODS.filter((method) => route.handlers[method] !== undefined);
  if (methods.includes("GET")) methods.push("HEAD");
  return methods.sort();
}

function createNode(): Node {
  return { statics: new Map(), parameter: undefined, leaf: undefined };
}

function addRoute(root: Node, route: Route): void {
  const names: string[] = [];
  let node = root;
  for (const segment of route.path.split("/").slice(1)) {
    const name = /^\[([a-z_]+)\]$/.exec(segment)?.[1];
    if (name === undefined) {
      let next = node.statics.get(segment);
      if (next === undefined) node.statics.set(segment, next = createNode());
      node = next;
    } else {
      names.push(name);
      node = node.parameter ??= createNode();
    }
  }
  if (node.leaf !== undefined) {
    throw new RangeError(`Cannot add route "${route.path}": it matches the same paths as "${node.leaf.route.path}"`);
  }
  node.leaf = { route, names };
}

/** Depth is that of the route tree, not of the request's path. Leaves the parameters' values in `values`. */
function findLeaf(node: Node, segments: readonly string[], values: string[], at = 0): Node["leaf"] {
  const segment = segments[at];
  if (segment === undefined) return node.leaf;
  const next = node.statics.get(segment);
  const found = next && findLeaf(next, segments, values, at + 1);
  if (found !== undefined || node.parameter === undefined || segment === "") return found;
  values.push(segment);
  const leaf = findLeaf(node.parameter, segments, values, at + 1);
  if (leaf === undefined) values.pop();
  return leaf;
}
