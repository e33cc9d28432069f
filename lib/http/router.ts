/** What a route file looks like, and how a request finds one. */
import type { Caller } from "../access/caller.ts";
import type { Gateway } from "../gateway.ts";

/** What a handler gets beside the request. */
export interface RouteContext {
  gateway: Gateway;
  /** The gateway's id of the request, `[A-Za-z0-9]+`. */
  requestId: string;
  /** Path parameters by the name in the file's path, decoded once. */
  params: Readonly<Record<string, string>>;
  /** Who asks; absent only on public routes. */
  caller: Caller | undefined;
}

/** A route's handler for one method. */
export type Handler = (request: Request, context: RouteContext) => Response | Promise<Response>;

/** The methods a route file may export. `HEAD` is answered by `GET`. */
export const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE"] as const;

/** A method a route file may export. */
export type Method = typeof METHODS[number];

/** One route file: its path in segments (`[name]` is a parameter) and its handlers. */
export interface Route {
  /** Such as `/v1/models/[provider]`. */
  path: string;
  handlers: Partial<Record<Method, Handler>>;
}
