export { signOut as POST } from "../../../lib/console/sign_in.tsx";
