{{ config(refresh_mode='DIFFERENTIAL', tier='hot') }}
select id, initcap(name) as name, region from {{ source('raw', 'customers') }}
