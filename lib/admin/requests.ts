/** `GET /admin/v1/requests`: finds requests in the ledger. */
import { findRequests, REQUEST_PARAMETERS, type RequestTexts } from "../billing/reports/requests.ts";
import type { RequestPage } from "../billing/reports/request_schemas.ts";
import type { Gateway } from "../gateway.ts";
import type { RouteContext } from "../server/router.ts";
import { readQuery, runReport } from "./request_input.ts";
import { streamedAdminResponse } from "./response.ts";

/** Returns a page of requests. @throws {GatewayError} `invalid` for parameters that cannot be read */
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
  return await runReport(() => findRequests({ ledger, keys, config }, texts, { now: now(), signal }));
}
