/** Searches for requests, over HTTP. */
import { findRequests, REQUEST_PARAMETERS, type RequestPage, type RequestTexts } from "../billing/reports/requests.ts";
import { ReportQueryError } from "../billing/reports/report_errors.ts";
import { GatewayError } from "../errors.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { readQuery } from "./request_input.ts";
import { streamedAdminResponse } from "./response.ts";

/** A page of requests. @throws {GatewayError} `invalid` for parameters that cannot be read */
export async function listRequests(request: Request, { gateway }: RouteContext): Promise<Response> {
  const texts = readQuery(request, REQUEST_PARAMETERS);
  return await streamedAdminResponse(await findRequestPage(texts, { gateway, signal: request.signal }));
}

/** Finds a page of requests. @throws {GatewayError} `invalid` for parameters that cannot be read */
export async function findRequestPage(
  texts: RequestTexts,
  { gateway, signal }: { gateway: Gateway; signal: AbortSignal },
): Promise<RequestPage> {
  const { store: { ledger, keys }, config, now } = gateway;
  try {
    return await findRequests({ ledger, keys, config }, texts, { now: now(), signal });
  } catch (error) {
    if (!(error instanceof ReportQueryError)) throw error;
    throw new GatewayError("invalid", error.message, { param: error.param, cause: error });
  }
}
