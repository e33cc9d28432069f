export { generateImages as POST } from "../../../lib/images/serve.ts";
