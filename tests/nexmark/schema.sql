-- The three tables of Nexmark and the side input of q13. Bids have no key: two of them may be equal.
create table person (
    id bigint primary key,
    name varchar,
    email_address varchar,
    credit_card varchar,
    city varchar,
    state varchar,
    date_time timestamp(3),
    extra varchar
);

create table auction (
    id bigint primary key,
    item_name varchar,
    description varchar,
    initial_bid bigint,
    reserve bigint,
    date_time timestamp(3),
    expires timestamp(3),
    seller bigint,
    category bigint,
    extra varchar
);

create table bid (
    auction bigint,
    bidder bigint,
    price bigint,
    channel varchar,
    url varchar,
    date_time timestamp(3),
    extra varchar
);

create table side_input (
    key bigint primary key,
    value varchar
);
