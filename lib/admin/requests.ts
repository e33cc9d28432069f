/** Searches for requests, over HTTP. */
import { findRequests, REQUEST_PARAMETERS, RequestQueryError } from "../billing/reports/requests.ts";
import { GatewayError } from "../errors.ts";
import type { RouteContext } from "../server/router.ts";
import { readQuery } from "./request_input.ts";
import { streamedAdminResponse } from "./response.ts";

/** A page of requests. @throws {GatewayError} `invalid` for parameters that cannot be read */
export async function listRequests(request: Request, { gateway }: RouteContext): Promise<Response> {
  const texts = readQuery(request, REQUEST_PARAMETERS);
  const { store: { ledger, keys }, config, now } = gateway;
  try {
    const page = await findRequests({ ledger, keys, config }, texts, { now: now(), signal: request.signal });
    return await streamedAdminResponse(page);
  } catch (error) {
    if (!(error instanceof RequestQueryError)) throw error;
    throw new GatewayError("invalid", error.message, { param: error.param, cause: error });
  }
}
