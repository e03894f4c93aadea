/** Who asks, as the authentication API describes a user. */
export interface UserInfo {
  name: string;
  uid?: string;
  groups: string[];
  extra?: Record<string, string[]>;
}

export const GROUP_AUTHENTICATED = 'system:authenticated';

/** Every authenticated user is in this group; reviews of permissions rely on it. */
export const authenticated = (user: UserInfo): UserInfo =>
  user.groups.includes(GROUP_AUTHENTICATED)
    ? user
    : { ...user, groups: [...user.groups, GROUP_AUTHENTICATED] };
