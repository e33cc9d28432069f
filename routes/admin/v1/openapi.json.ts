import { serveAdminDocument } from "../../../lib/admin/openapi.ts";

export function GET(): Response {
  return serveAdminDocument();
}
