import type { RouteContext } from "../../../lib/server/router.ts";

export async function GET(request: Request, context: RouteContext): Promise<Response> {
  const { configurationPage } = await import("../../../lib/console/configuration.tsx");
  return configurationPage(request, context);
}

export async function POST(request: Request, context: RouteContext): Promise<Response> {
  const { changeConfiguration } = await import("../../../lib/console/configuration.tsx");
  return changeConfiguration(request, context);
}
