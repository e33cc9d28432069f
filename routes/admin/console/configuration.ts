import { changeConfiguration, configurationPage } from "../../../lib/console/configuration.tsx";
import type { RouteContext } from "../../../lib/server/router.ts";

export function GET(request: Request, context: RouteContext): Promise<Response> {
  return configurationPage(request, context);
}

export function POST(request: Request, context: RouteContext): Promise<Response> {
  return changeConfiguration(request, context);
}
